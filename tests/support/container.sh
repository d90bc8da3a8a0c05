# shellcheck shell=bash
# Container images made by hand, for tests: no registry and no other program is needed. To be sourced.

digest() { sha256sum "$1" | cut -d' ' -f1; }
bytes() { stat -c %s "$1"; }

# layer FOLDER FILE: a layer of everything in the folder.
layer() {
    (cd "$1" && find . -mindepth 1 -printf '%P\0') | LC_ALL=C sort -z |
        tar --owner=0 --group=0 --numeric-owner --mtime=@0 -C "$1" --no-recursion -cf "$2" --null -T -
}

# craft FILE NAME TYPE LINK: an archive of one entry, which no tar would write.
craft() {
    local sum
    head -c 1536 /dev/zero >"$1"
    put() { printf '%s' "$2" | dd of="$craft" bs=1 seek="$1" conv=notrunc status=none; }
    local craft=$1
    put 0 "$2" && put 100 0000644 && put 124 00000000000 && put 148 '        ' && put 156 "$3"
    put 157 "$4" && put 257 ustar && put 263 00
    sum=$(head -c 512 "$1" | od -An -v -tu1 | awk '{ for (i = 1; i <= NF; i++) sum += $i } END { print sum }')
    put 148 "$(printf '%06o' "$sum")"
}

# blob LAYOUT FILE: stores a blob, and prints its descriptor without the braces.
blob() {
    mkdir -p "$1/blobs/sha256"
    cp "$2" "$1/blobs/sha256/$(digest "$2")"
    printf '"digest":"sha256:%s","size":%s' "$(digest "$2")" "$(bytes "$2")"
}

# config_of START FILE LAYER...: a configuration with the layers without their compression.
config_of() {
    local start=$1 file=$2 ids=''
    shift 2
    for tar in "$@"; do ids=$ids${ids:+,}'"sha256:'$(digest "$tar")'"'; done
    printf '{"architecture":"%s","os":"%s","config":%s,"rootfs":{"type":"layers","diff_ids":[%s]}}' \
        "${arch:-amd64}" "${os:-linux}" "$start" "$ids" >"$file"
}

# layout FOLDER CONFIG FILE...: an OCI image layout with the layers as they are stored.
layout() {
    local folder=$1 config=$2 layers=''
    shift 2
    for file in "$@"; do layers=$layers${layers:+,}"{\"mediaType\":\"application/vnd.oci.image.layer.v1.tar\",$(blob "$folder" "$file")}"; done
    printf '{"schemaVersion":2,"config":{"mediaType":"application/vnd.oci.image.config.v1+json",%s},"layers":[%s]}' \
        "$(blob "$folder" "$config")" "$layers" >"$folder.manifest"
    printf '{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json",%s,"annotations":{"org.opencontainers.image.ref.name":"one"}}]}' \
        "$(blob "$folder" "$folder.manifest")" >"$folder/index.json"
    rm "$folder.manifest"
    echo '{"imageLayoutVersion":"1.0.0"}' >"$folder/oci-layout"
}

# saved TAR CONFIG LAYER...: what `docker save` writes.
saved() {
    local tar=$1 config=$2 folder=$1.d names=''
    shift 2
    mkdir -p "$folder"
    cp "$config" "$folder/$(digest "$config").json"
    for file in "$@"; do
        mkdir -p "$folder/$(digest "$file")"
        cp "$file" "$folder/$(digest "$file")/layer.tar"
        names=$names${names:+,}"\"$(digest "$file")/layer.tar\""
    done
    printf '[{"Config":"%s.json","RepoTags":["test:1"],"Layers":[%s]}]' "$(digest "$config")" "$names" >"$folder/manifest.json"
    tar -C "$folder" -cf "$tar" .
    rm -r "$folder"
}
