# Has routes announced once more, and waits until that is done:
#   sh refresh KIND          the router on this node asks weft
#   sh refresh weft ADDRESS  weft on this node asks the peer with this address
set -eu

# UPDATEs that have come, or what grows with them.
count() {
    case $1 in
    bird) birdc show protocols all r | sed -n 's/ *Import updates: *\([0-9]*\).*/\1/p' ;;
    frr) vtysh -c 'show bgp neighbors 10.0.2.1 json' | sed -n 's/.*"updatesRecv":\([0-9]*\).*/\1/p' ;;
    exabgp) grep -c announced heard ;;
    weft) weft show bgp peers | awk -v peer="$2" '$1 == peer { print $7 }' ;;
    esac
}

before=$(count "$@")
case $1 in
bird) birdc reload in r ;;
frr) vtysh -c 'clear bgp ipv4 unicast 10.0.2.1 in' ;;
exabgp) exabgpcli announce route-refresh ipv4 unicast ;;
weft) weft call "finder://bgp/bgp/1.1/clear?peer:ip=$2&soft:txt=in" ;;
esac
until test "$(count "$@")" -gt "$before"; do sleep 0.05; done
