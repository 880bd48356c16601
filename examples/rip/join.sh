#!/bin/sh
# Gives the node r a gateway, and whoever has the key far.key the right to call what RIP needs.
set -e
weft xia id new node.key | sed 's/^hid-//' > node.hash
far=$(weft xia id new far.key | sed 's/^hid-//')
access=$(weft away rip --access)
weft configure -c "set gateway listen 10.0.9.1:6500" -c "set gateway key \"$(sed -n 2p node.key)\"" \
    -c "set operators key $far access $access" -c commit
