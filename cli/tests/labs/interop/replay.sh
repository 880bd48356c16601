# Tables of BGP in files in the form of MRT:
#   sh routes written FILE COUNT    writes that of this router until it has so many prefixes
#   sh routes same FILE OTHER       whether two have the same prefixes with the same paths
set -eu

paths() {
    weft bgp table "$1" | sed -n 's/^\([^ ]*\) via [^ ]* path \(.*\) from .*$/\1 \2/p' | sort
}

case $1 in
written) until weft bgp dump "$2" | grep "^$3 prefixes"; do sleep 0.2; done ;;
same)
    paths "$2" > first
    paths "$3" > second
    test -s first
    cmp first second
    ;;
esac
