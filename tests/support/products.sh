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
# Small whole numbers, whose products are exact, for a large matrix in little time: each row is a part of one long one.
wide() { # FILE ROWS COLUMNS SEED
    zeros "$1" "$2" "$3"
    perl -e 'my ($file, $rows, $columns, $seed) = @ARGV;
        srand($seed);
        my $long = pack("f<*", map { int(rand(9)) - 4 } 1 .. $columns + 4096);
        open my $to, "+<:raw", $file or die "$file: $!\n";
        seek $to, 128, 0;
        print $to substr($long, 4 * int(rand(4096)), 4 * $columns) for 1 .. $rows;
        close $to or die "$file: $!\n"' "$@"
}
multiplying() { # COUNT: so many devices on offer multiply
    [ "$("$bourse" devices --needs 'executor = tensor' --json 2>/dev/null | grep -o '"price_micro":[0-9]' | wc -l)" -ge "$1" ]
}
