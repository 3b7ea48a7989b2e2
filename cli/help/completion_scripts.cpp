#include "cli/help/completion_scripts.h"

namespace offprof {
namespace {

// Bash splits words at `=` and `:` and replaces only the last part, $2. The program gets whole words.
constexpr std::string_view kBash = R"SCRIPT(# bash completion for offprof
_offprof() {
    local line=$COMP_LINE words=() names=() i answer candidate before
    line=${line#*"${COMP_WORDS[0]}"}
    for ((i = 1; i <= COMP_CWORD; i++)); do
        if [[ $line == [[:blank:]]* || ${#words[@]} -eq 0 ]]; then
            words+=("${COMP_WORDS[i]}")
        else
            words[-1]+=${COMP_WORDS[i]}
        fi
        line=${line#*"${COMP_WORDS[i]}"}
    done
    mapfile -t answer < <("${1/#\~/$HOME}" __complete "${words[@]}" 2>/dev/null)
    before=${words[-1]%"$2"}
    for candidate in "${answer[@]:1}"; do
        candidate=${candidate%% *}
        COMPREPLY+=("${candidate#"$before"}")
    done
    case ${answer[0]} in
    files) mapfile -t names < <(compgen -f -- "$2") ;;
    folders) mapfile -t names < <(compgen -d -- "$2") ;;
    programs) mapfile -t names < <(compgen -c -- "$2") ;;
    esac
    if [ ${#names[@]} -gt 0 ]; then
        compopt -o filenames 2>/dev/null
        COMPREPLY+=("${names[@]}")
    fi
}
complete -F _offprof offprof
)SCRIPT";

constexpr std::string_view kZsh = R"SCRIPT(#compdef offprof
# zsh completion for offprof
_offprof() {
    local -a answer candidates
    local line
    answer=("${(@f)$("${(e)words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    for line in "${(@)answer[2,-1]}"; do
        candidates+=("${${line%% *}//:/\\:}:${line#* }")
    done
    (( $#candidates )) && _describe -t values value candidates
    compset -P '--*='
    case $answer[1] in
    files) _files ;;
    folders) _files -/ ;;
    programs) _command_names -e ;;
    esac
}
if [ "$funcstack[1]" = _offprof ]; then
    _offprof "$@"
else
    compdef _offprof offprof
fi
)SCRIPT";

constexpr std::string_view kFish = R"SCRIPT(# fish completion for offprof
function __offprof_complete
    set -l current (commandline -ct)
    set -l words (commandline -opc)
    set -l program $words[1]
    set -e words[1]
    set -l answer ($program __complete $words "$current" 2>/dev/null)
    for line in $answer[2..-1]
        string replace ' ' \t -- $line
    end
    set -l option (string match -r -- '^--[^=]+=' "$current")
    set -l value (string replace -r -- '^--[^=]+=' '' "$current")
    switch "$answer[1]"
        case files
            string replace -r -- '^' "$option" (__fish_complete_path "$value")
        case folders
            string replace -r -- '^' "$option" (__fish_complete_directories "$value")
        case programs
            complete -C "$value"
    end
end
complete -c offprof -f -a '(__offprof_complete)'
)SCRIPT";

}  // namespace

std::string_view completion_script(Shell shell) {
  switch (shell) {
    case Shell::kBash:
      return kBash;
    case Shell::kZsh:
      return kZsh;
    case Shell::kFish:
      return kFish;
  }
  return {};
}

}  // namespace offprof
