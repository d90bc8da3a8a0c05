# hold.pl NAME PID...: looks without a pause until a program of that name runs below one of these processes. Then it makes
# the program stand still, and prints which of the processes it is below. A program that runs for a tenth of a second is seen.
use strict;
use warnings;

my ($name, @tops) = @ARGV;
my %is_top = map { $_ => 1 } @tops;
for (;;) {
    my (%parent, @found);
    opendir(my $proc, '/proc') or die "hold: /proc: $!\n";
    for my $pid (grep { /^\d+$/ } readdir $proc) {
        open(my $stat, '<', "/proc/$pid/stat") or next;
        my $line = <$stat> // next;
        $line =~ /^\d+ \((.*)\) \S+ (\d+)/s or next;
        $parent{$pid} = $2;
        push @found, $pid if $1 eq $name;
    }
    for my $pid (@found) {
        my $up = $pid;
        $up = $parent{$up} while !$is_top{$up} && $up > 1 && exists $parent{$up};
        if ($is_top{$up} && kill 'STOP', $pid) {
            print "$up\n";
            exit;
        }
    }
}
