_petstore() {
    local IFS=' ' line="${COMP_WORDS[*]:1:COMP_CWORD-1}"
    local word="${COMP_WORDS[COMP_CWORD]}" offered= found
    COMPREPLY=()
{{cases}}    while IFS= read -r found; do COMPREPLY+=("$found"); done < <(IFS=$' \n'; compgen -W "$offered" -- "$word"; [[ $word == -* ]] || compgen -f -- "$word")
}
complete -o filenames -F _petstore petstore
