# Waits until a router has from r exactly 10,000 prefixes from each of these on:
#   sh same KIND FIRST…
set -eu
kind=$1
shift
case $1 in *:*) family=ipv6 begin='^2a0' ;; *) family=ipv4 begin='^10[0-3]\.' ;; esac
expected=expected-$kind-$family
for first in "$@"; do weft bgp sample 10000 --first "$first"; done | sort > "$expected"

# What the router says of its whole table, a prefix in each line, its own ones left out.
heard() {
    case $kind in
    bird) birdc "show route protocol r${family#ipv}" | awk '{ print $1 }' ;;
    frr) vtysh -c "show bgp $family unicast neighbors $(peer) routes json" | grep -o '"network":"[^"]*"' | cut -d '"' -f 4 ;;
    gobgp) gobgp neighbor "$(peer)" adj-in -a "$family" | awk 'NR > 1 { print $2 }' ;;
    exabgp) sed -n 's/.* announced \([^ ]*\) .*/\1/p' heard ;;
    esac
}

peer() {
    case $kind-$family in
    frr-ipv4) echo 10.0.2.1 ;;
    frr-ipv6) echo 2001:db8:2::1 ;;
    gobgp-ipv4) echo 10.0.3.1 ;;
    gobgp-ipv6) echo 2001:db8:3::1 ;;
    esac
}

until heard | grep "$begin" | sort > "got-$kind-$family" && cmp -s "$expected" "got-$kind-$family"; do sleep 0.5; done
wc -l < "got-$kind-$family"
