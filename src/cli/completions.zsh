#compdef petstore
_petstore() {
    local line="${(j: :)words[2,CURRENT-1]}" word="$words[CURRENT]" offered= missed=1
{{cases}}    compadd -- ${(Q)${(Z+n+)offered}} && missed=0
    [[ $word != -* ]] && _files && missed=0
    return missed
}
if [[ $funcstack[1] == _petstore ]]; then _petstore; else compdef _petstore petstore; fi
