# shellcheck shell=bash
# What the scripts of bench/ share: the median and the spread of figures, and matrices that a seed makes.

# Each reads figures from standard input, apart by spaces.
median() { tr ' ' '\n' | sort -g | awk 'NF {v[++n] = $1} END {print n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2}'; }
spread() { tr ' ' '\n' | sort -g | awk 'NF {v[++n] = $1} END {printf "[%s, %s]", v[1], v[n]}'; }

matrix() { # FILE ROWS COLUMNS SEED
    perl -e 'my ($file, $rows, $columns, $seed) = @ARGV;
        srand($seed);
        my $text = "{\x27descr\x27: \x27<f4\x27, \x27fortran_order\x27: False, \x27shape\x27: ($rows, $columns), }";
        $text .= " " x (117 - length $text) . "\n";
        open my $to, ">:raw", $file or die "$file: $!\n";
        print $to "\x93NUMPY\1\0", pack("v", length $text), $text;
        print $to pack("f<*", map { (rand(2) - 1) / sqrt($columns) } 1 .. $columns) for 1 .. $rows;
        close $to or die "$file: $!\n"' "$@"
}
