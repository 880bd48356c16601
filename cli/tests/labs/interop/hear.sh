# Writes what ExaBGP says to a file. Its own output stays open: ExaBGP takes the end of that for its death.
cat > "$1"
