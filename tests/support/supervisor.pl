#!/usr/bin/perl
# The supervisor of a service, as systemd is one: it binds the datagram socket SOCKET, and appends each message to FILE as one
# line, with `|` between the lines of the message. It ends when its standard input does.
#
#   supervisor.pl SOCKET FILE
use strict;
use warnings;
use IO::Handle;
use IO::Select;
use Socket;

my ($path, $file) = @ARGV;
socket(my $socket, PF_UNIX, SOCK_DGRAM, 0) or die "supervisor: $!\n";
bind($socket, pack_sockaddr_un($path)) or die "supervisor: $path: $!\n";
chmod 0666, $path or die "supervisor: $path: $!\n";
open my $out, '>>', $file or die "supervisor: $file: $!\n";
$out->autoflush(1);
my $select = IO::Select->new($socket, \*STDIN);
while (1) {
    for my $ready ($select->can_read()) {
        exit 0 if $ready == \*STDIN && !sysread(STDIN, my $nothing, 1);
        next if $ready == \*STDIN;
        recv($socket, my $message, 4096, 0);
        $message =~ tr/\n/|/;
        print $out "$message\n";
    }
}
