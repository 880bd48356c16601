# Makes 99 clients of the route server: their addresses, and the configuration of the one ExaBGP that they share. Each has a session and
# a network of its own. What they hear is in the file `heard`.
set -eu
cat > hear << 'END'
# ExaBGP takes the end of this program's output for its death: it stays open.
cat > "$1"
END
{
    echo "process heard { run /bin/sh $PWD/hear $PWD/heard; encoder json; }"
    for n in $(seq 99); do
        cat << END
neighbor 10.0.0.254 {
    router-id 10.0.0.$n;
    local-address 10.0.0.$n;
    local-as $((64600 + n));
    peer-as 65000;
    family { ipv4 unicast; }
    api { processes [ heard ]; receive { parsed; update; } }
    static { route 100.64.$n.0/24 next-hop self; }
}
END
    done
} > ixp.conf
for n in $(seq 99); do echo "address add 10.0.0.$n/24 dev lan"; done | ip -batch -
