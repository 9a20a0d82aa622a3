# Completions of transcript for fish.
function __transcript_complete
    set -l words (commandline -opc)
    set -l lines ($words[1] __complete -- $words[2..-1] (commandline -ct) 2>/dev/null)
    printf '%s\n' $lines[2..-1]
    switch "$lines[1]"
        case files
            __fish_complete_path (commandline -ct)
        case folders
            __fish_complete_directories (commandline -ct)
    end
end
complete -c transcript -f -k -a '(__transcript_complete)'
