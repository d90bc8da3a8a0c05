# shellcheck shell=bash
# shellcheck disable=SC2154 # market.sh and fire_begin set bourse
# What tests of products share. The file is read after market.sh, before fire_begin changes the folder.
maker=$(dirname "$(realpath "$0")")/../support/matrix.pl
matrix() { "$maker" "$@"; }
zeros() { # FILE ROWS COLUMNS
    matrix "$1" 0 0
    sed -i "s/(0, 0), }$(printf '%*s' $((${#2} + ${#3} - 2)) '')/($2, $3), }/" "$1"
    truncate -s $((128 + 4 * $2 * $3)) "$1"
}
multiplying() { # COUNT: so many devices on offer multiply
    [ "$("$bourse" devices --needs 'executor = tensor' --json 2>/dev/null | grep -o '"price_micro":[0-9]' | wc -l)" -ge "$1" ]
}
