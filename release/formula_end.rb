  def install
    bin.install "transcript"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/transcript.bash" => "transcript"
    zsh_completion.install "completions/_transcript"
    fish_completion.install "completions/transcript.fish"
    doc.install "README.md", "LICENSE-APACHE", "LICENSE-MIT"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/transcript --version")
  end
end
