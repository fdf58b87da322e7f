# A suite as small as can be, which upstream_test.py puts in the place of a server's own: it has the
# procedures and variables that upstream/suite.tcl hooks into, and one file of tests.

set ::servers {}
set ::client 1  ;# this suite runs its file itself
set ::started 0

proc send_data_packet {fd status data {elapsed 0}} {
    puts "\[$status\]: $data"
}

proc fail {message} {
    error "assertion:$message"
}

proc test {name code} {
    if {$name in $::skipped} {
        send_data_packet 0 skip $name
        return
    }
    send_data_packet 0 testing $name
    if {[catch {uplevel 1 $code} message]} {
        send_data_packet 0 err "$name in $::curfile\n$message"
    } else {
        send_data_packet 0 ok $name
    }
}

# Sends a command of words without spaces to the server that was started last. Returns its reply as
# one list of lines.
proc r {args} {
    set connection [socket 127.0.0.1 [dict get [lindex $::servers end] port]]
    fconfigure $connection -translation binary
    puts -nonewline $connection "[join $args { }]\r\nECHO end-of-reply\r\n"
    flush $connection
    set lines {}
    while {[gets $connection line] >= 0 && [string trim $line] ne "end-of-reply"} {
        lappend lines [string trim $line]
    }
    close $connection
    return [lrange $lines 0 end-1]
}

proc start_server {code} {
    set folder tests/tmp/[incr ::started]
    file mkdir $folder
    set port [expr {$::base_port + $::started}]
    set settings [list port $port bind 127.0.0.1 dir $folder save {""} enable-debug-command yes]
    set file [open $folder/settings w]
    foreach {name value} [concat $settings $::settings] {puts $file "$name $value"}
    close $file
    set pid [exec [glob src/*-server] $folder/settings > $folder/log 2>@1 &]
    lappend ::servers [dict create pid $pid port $port config [dict create dir $folder]]
    while {[catch {r PING} reply] || $reply ne "+PONG"} {after 10}
    uplevel 1 $code
    set server [lindex $::servers end]
    set ::servers [lrange $::servers 0 end-1]
    kill_server $server
}

proc kill_server {server} {
    exec kill -9 [dict get $server pid]
}

set ::settings {}
set ::curfile tests/[lindex $argv [lsearch $argv --single]+1].tcl
set ::base_port [lindex $argv [lsearch $argv --baseport]+1]
set ::skipped [lmap at [lsearch -all $argv --skiptest] {lindex $argv $at+1}]
set at [lsearch $argv --config]
if {$at >= 0} {set ::settings [lrange $argv $at+1 $at+2]}

if {$::client} {
    source $::curfile
    send_data_packet 0 done $::curfile
}
