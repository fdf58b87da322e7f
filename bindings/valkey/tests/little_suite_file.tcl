start_server {
    test {passes everywhere} {
        r SET kept 1
        r RPUSH list a b c
    }
    test {fails everywhere} {
        fail "always"
    }
    test {fails with a module	} {
        if {[string match *perdix* [r MODULE LIST]]} {fail "a module\tis loaded"}
    }
    test {runs twice} {}
    test {runs twice} {}
}

test {starts a server of its own} {
    start_server {
        r SET kept 1
    }
}
