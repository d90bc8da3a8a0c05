# descendants.pl PID [NAME]: prints all that descends from a process, without the process: "pid start" each, so that a reused
# pid is not taken for it. With NAME: only those whose program has that name. Each process is read once, so that one
# that lives for a tenth of a second is seen as long as it lives, on a busy machine too.
use strict;
use warnings;

my ($top, $name) = @ARGV;
my (%parent, %start, %named);
opendir(my $proc, '/proc') or die "descendants: /proc: $!\n";
for my $pid (grep { /^\d+$/ } readdir $proc) {
    open(my $stat, '<', "/proc/$pid/stat") or next;
    my $line = <$stat> // next;
    # pid (comm) state ppid ... starttime, the 22nd; a name may have blanks and parentheses.
    $line =~ /^\d+ \((.*)\) (.*)$/s or next;
    my ($comm, @rest) = ($1, split ' ', $2);
    ($parent{$pid}, $start{$pid}, $named{$pid}) = ($rest[1], $rest[19], $comm);
}
for my $pid (sort { $a <=> $b } keys %parent) {
    my $up = $pid;
    $up = $parent{$up} while $up != $top && $up > 1 && exists $parent{$up};
    print "$pid $start{$pid}\n" if $up == $top && $pid != $top && (!defined $name || $named{$pid} eq $name);
}
