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
  --kernel --kvm-device --libxo --machine --memory --qemu -b -c -C -d -D -e -f -F -H -i -I -l -L -m -n -o
  -O -p -P -q -s -S -U -v -V -w -x -X -Z"

_ringside_images() {
  local folder
  for folder in "$RINGSIDE_IMAGES" "$(dirname "$(command -v "$1")")/images"; do
    [[ -d $folder ]] && (cd "$folder" && compgen -d)
  done 2>/dev/null
}

_ringside() {
  local word=$2 before=$3
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
    ((COMP_CWORD == 1)) && COMPREPLY+=($(compgen -W "clean compile examples run stats vms why" -- "$word"))
  fi
  return 0
}

complete -F _ringside ringside
