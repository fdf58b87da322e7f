# Runs files of a server's own suite, in the folder of its source, and records each test:
#
#   tclsh suite.tcl OPTION...       the options of the suite's runtest
#
# The suite stays as it is: this script evaluates the suite's helper with a hook before its main
# program. The environment says what the hook does:
#
#   PERDIX_RESULTS   the file that gets lines for each test: status, file, test, message; the first
#                    has the status `testing`, when the test begins
#   PERDIX_IMAGES    the port of the program that compares images (images.py), or empty
#
# The suite starts itself again as its own client, which runs the tests, so this script runs twice.

# Escapes a word for a line whose words are separated by tabs.
proc perdix_word {text} {
    return [string map [list \\ \\\\ \t \\t \n \\n \r \\r] $text]
}

proc perdix_line {args} {
    return [join [lmap word $args {perdix_word $word}] \t]
}

proc perdix_record {status message} {
    set file [open $::env(PERDIX_RESULTS) a]
    fconfigure $file -translation lf -encoding utf-8
    puts $file [perdix_line $status $::curfile $::perdix_test $message]
    close $file
}

# Has an image of each running server compared, and waits until that is done.
proc perdix_compare {servers} {
    if {$::env(PERDIX_IMAGES) eq ""} return
    foreach server $servers {
        set pid [dict get $server pid]
        if {![file exists /proc/$pid]} continue
        set folder [file normalize [dict get $server config dir]]
        set images [socket 127.0.0.1 $::env(PERDIX_IMAGES)]
        fconfigure $images -translation lf -encoding utf-8
        puts $images [perdix_line $::curfile $::perdix_test $pid [dict get $server port] $folder]
        flush $images
        gets $images
        close $images
    }
}

proc perdix_hook {} {
    if {!$::client} return
    set ::perdix_test ""
    set ::perdix_done 0  ;# what the suite's client sends behind its file is its own end

    rename send_data_packet perdix_send
    proc send_data_packet {fd status data {elapsed 0}} {
        if {$status eq "done"} {set ::perdix_done 1}
        if {!$::perdix_done && $status in {testing ok err skip ignore exception}} {
            perdix_record $status $data
        }
        perdix_send $fd $status $data $elapsed
    }

    rename test perdix_run
    proc test {name args} {
        set outer $::perdix_test
        set ::perdix_test $name
        set code [catch {uplevel 1 [list perdix_run $name {*}$args]} result options]
        perdix_compare $::servers
        set ::perdix_test $outer
        return -options $options $result
    }

    # A server that a test starts for itself is gone when the test ends.
    rename kill_server perdix_kill
    proc kill_server {server} {
        if {$::perdix_test ne ""} {perdix_compare [list $server]}
        perdix_kill $server
    }
}

set perdix_main "\nif {\$::client} {"
set perdix_file [open tests/test_helper.tcl]
set perdix_text [read $perdix_file]
close $perdix_file
set perdix_at [string first $perdix_main $perdix_text]
if {$perdix_at < 0 || $perdix_at != [string last $perdix_main $perdix_text]} {
    error "tests/test_helper.tcl has no main program that begins with: $perdix_main"
}
eval [string range $perdix_text 0 $perdix_at]perdix_hook[string range $perdix_text $perdix_at end]
