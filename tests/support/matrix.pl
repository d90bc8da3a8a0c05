#!/usr/bin/perl
# matrix.pl FILE ROWS COLUMNS [SEED [whole]]: a float32 matrix as a .npy file: numbers in -1 .. 1, or small whole
# numbers, whose products are exact.
use strict;
use warnings;

my ($file, $rows, $columns, $seed, $whole) = @ARGV;
die "usage: matrix.pl FILE ROWS COLUMNS [SEED [whole]]\n" unless defined $columns;
srand($seed // 1);
my $text = "{'descr': '<f4', 'fortran_order': False, 'shape': ($rows, $columns), }";
$text .= ' ' x (117 - length $text) . "\n";
open my $to, '>:raw', $file or die "$file: $!\n";
print $to "\x93NUMPY\1\0", pack('v', length $text), $text;
for (1 .. $rows) {
    print $to pack('f<*', map { $whole ? int(rand(9)) - 4 : rand(2) - 1 } 1 .. $columns);
}
close $to or die "$file: $!\n";
