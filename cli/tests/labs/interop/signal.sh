# Sends a signal to the BGP process of FRR, whose number lies beside the tools of its node.
kill -s "$1" "$(cat "$(dirname "$(command -v vtysh)")/../frr/bgpd.pid")"
