# Completion of ringside(1) for bash. cli/options/manual_test.cc checks that every option is here.

_ringside_x_options="aggpercpu agghist aggmerge aggpack aggrate= aggsize= aggsortkey aggsortkeypos= aggsortpos=
  aggsortrev aggzoom amin= argref bootargs= bpflog bpflogsize= bufpolicy= bufresize= bufsize= channel=
  cleanrate= core cpp cppargs= cpphdrs cpppath= cpu= ctypes= debug debugassert defaultargs define=
  destructive disasm= droptags dtypes= dynvarsize= empty encoding= errtags evaltime= flowindent incdir=
  iregs= jstackframes= jstackstrsize= jumpprobes kdefs knodefs late= lazyload ldpath= libdir= linkmode= linknommap
  linktype= lockmem= maxframes= maxrate= maxslow= nolibs noresolve nspec= oformat= pgmax= pollthreads= preallocate= printsize= pspec
  quiet quietresize rawbytes rawtext scratchsize= setenv= specsize= stackframes= stackindent= statusrate= stdc=
  strip strsize= switchrate= syslibdir= temporal tree= tregs= udefs undef= unodefs unsetenv=
  ustackframes= verbose version= zdefs"
_ringside_providers="dtrace fbt instr io ip lockstat mib proc profile sched sdt syscall sysinfo tcp udp vm vminfo"
_ringside_options="--after-boot --append --as-is --attach --boot --cache --console --core --cpus --disk --help --image --initrd --keep
  --kernel --kvm-device --libxo --machine --memory --qemu --types --version -b -c -C -d -D -e -f -F -H -i -I -l -L -m -n -o
  -O -p -P -q -s -S -U -v -V -w -x -X -Z"

_ringside_images() {
  local folder
  for folder in "$RINGSIDE_IMAGES" "$(dirname "$(command -v "$1")")/images"; do
    [[ -d $folder ]] && (cd "$folder" && compgen -d)
  done 2>/dev/null
}

# The targets of --attach: the last column of those that can be attached to.
_ringside_targets() {
  "$1" vms 2>/dev/null | awk 'NR > 1 && !/ no: / { print $NF }'
}

_ringside_examples() {
  "$1" examples 2>/dev/null | awk 'NF == 0 { exit } { print $1 }'
}

# bash takes qmp:PATH for three words: the part that is typed already is taken off what is found.
_ringside_complete_target() {
  local typed=${COMP_LINE:0:COMP_POINT}
  typed=${typed##* }
  COMPREPLY=($(compgen -W "$(_ringside_targets "$1")" -- "$typed"))
  COMPREPLY=("${COMPREPLY[@]#"${typed%"${typed##*:}"}"}")
}

_ringside() {
  local word=$2 before=$3 line=${COMP_LINE:0:COMP_POINT}
  line=${line% *}  # without the word that is typed
  case ${line##* } in
    --attach) _ringside_complete_target "$1"; return ;;
  esac
  case ${COMP_WORDS[1]} in
    why | clean) [[ $word != -* && $COMP_CWORD -gt 1 ]] && { _ringside_complete_target "$1"; return; } ;;
    examples) ((COMP_CWORD == 2)) && { COMPREPLY=($(compgen -W "$(_ringside_examples "$1")" -- "$word")); return; } ;;
  esac
  case $before in
    # bash splits at "=": an option's value is completed by the shell's own rules.
    -x) COMPREPLY=($(compgen -W "$_ringside_x_options" -- "$word"))
        [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
        return ;;
    --machine) COMPREPLY=($(compgen -W "auto kvm qemu qemu-kvm" -- "$word")); return ;;
    --boot) COMPREPLY=($(compgen -W "auto pvh bzimage" -- "$word")); return ;;
    -O | --libxo) COMPREPLY=($(compgen -W "json jsonl xml html csv" -- "$word")); return ;;
    -X) COMPREPLY=($(compgen -W "a c s t" -- "$word")); return ;;
    -P) COMPREPLY=($(compgen -W "$_ringside_providers" -- "$word")); return ;;
    --image) COMPREPLY=($(compgen -W "$(_ringside_images "$1")" -- "$word")); return ;;
    -I | -L) compopt -o filenames; COMPREPLY=($(compgen -d -- "$word")); return ;;
    -b | -c | -D | -f | -i | -m | -n | -p | -U | --append | --cpus | --memory) return ;;
  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$_ringside_options" -- "$word"))
  else
    compopt -o filenames
    COMPREPLY=($(compgen -f -- "$word"))
    ((COMP_CWORD == 1)) && COMPREPLY+=($(compgen -W "clean compile examples help run stats vms why" -- "$word"))
  fi
  return 0
}

complete -F _ringside ringside
