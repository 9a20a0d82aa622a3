# Completions of transcript for bash, 3.2 or later.
_transcript() {
    local -a words=()
    local word glued= others= line value
    # bash takes SESSION:LINE and --option=value apart; they are one word here.
    for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
        if [[ ${#words[@]} -gt 0 && ( -n $glued || $word == [:=]* ) ]]; then
            words[${#words[@]}-1]+=$word
        else
            words+=("$word")
        fi
        glued=
        [[ $word == *[:=] ]] && glued=1
    done
    # What readline replaces is the last of the parts.
    local last=${words[${#words[@]}-1]} part=${COMP_WORDS[COMP_CWORD]}
    [[ $part == [:=] ]] && part=
    local apart=${last%"$part"}
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ -z $others ]]; then
            others=$line
            continue
        fi
        value=${line%%$'\t'*}
        COMPREPLY+=("${value#"$apart"}")
        line=${line#*$'\t'}
        [[ -n $line ]] && COMPREPLY[${#COMPREPLY[@]}-1]+="  ($line)"
    done < <("${COMP_WORDS[0]}" __complete -- "${words[@]}" 2>/dev/null)
    # Meanings are shown in a list, and never inserted.
    if [[ ${#COMPREPLY[@]} -lt 2 || ( ${COMP_TYPE:-9} -ne 63 && ${COMP_TYPE:-9} -ne 33 && ${COMP_TYPE:-9} -ne 64 ) ]]; then
        COMPREPLY=("${COMPREPLY[@]%%  (*}")
    fi
    [[ -z ${COMPREPLY[0]-} ]] && COMPREPLY=()
    case $others in
        files) compopt -o default 2>/dev/null ;;
        folders) compopt -o dirnames 2>/dev/null ;;
    esac
    return 0
}
complete -o nosort -F _transcript transcript 2>/dev/null || complete -F _transcript transcript
