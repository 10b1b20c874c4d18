# A dumbbell in ns-2, described by key=value arguments, measured between two moments, printed as key value lines.
#
#   ns dumbbell.tcl queue=pi rate=15 delay=50 access_rate=50 access_delay=50 limit=800 duration=100 from=20 \
#      seed=1 newreno=99 tfrc=1 tfrc_rate=128 udp=0 packet=1000 window=10000
#
# Rates are Mbit/s, but for tfrc_rate and udp_rate, which are kbit/s of each application (tfrc_rate 0: it always has
# data). Delays are ms, packets bytes on the wire. Every flow has access links of its own; it starts at a moment drawn
# uniformly from 0..1 s. duration=0 measure=0 ends when everything is set up: what that costs is not the run's.

array set opt {
    queue pi rate 15 delay 50 access_rate 50 access_delay 50 limit 800 qref 200
    a 0.00001822 b 0.00001816
    duration 100 from 20 seed 1 newreno 100 tfrc 0 udp 0 tfrc_rate 0 udp_rate 0 packet 1000 window 10000 measure 1
}
foreach argument $argv {
    set pair [split $argument =]
    set name [lindex $pair 0]
    if {[llength $pair] != 2 || ![info exists opt($name)]} {
        puts stderr "unknown argument $argument; known: [lsort [array names opt]]"
        exit 2
    }
    set opt($name) [lindex $pair 1]
}

ns-random $opt(seed)
set ns [new Simulator]
$ns use-scheduler Calendar
remove-all-packet-headers
add-packet-header IP TCP TFRC TFRC_ACK RTP Flags

# What matters of ns-2's defaults: PI counts packets, samples at 170 Hz with a = 1.822e-5, b = 1.816e-5; TCP counts
# packets without headers, has an initial window of 2, a least retransmission timeout of 0.2 s and a clock of 10 ms.
Queue/PI set a_ $opt(a)
Queue/PI set b_ $opt(b)
Queue/PI set qref_ $opt(qref)
Queue/PI set mean_pktsize_ $opt(packet)
Queue/PI set setbit_ false
Agent/TCP set packetSize_ $opt(packet)
Agent/TCP set window_ $opt(window)
Agent/TCP set useHeaders_ false
# TFRC would add 32 B to each packet, and its equation would not know of them.
Agent/TFRC set packetSize_ $opt(packet)
Agent/TFRC set useHeaders_ false

set left [$ns node]
set right [$ns node]
set kind [expr {$opt(queue) eq "pi" ? "PI" : "DropTail"}]
$ns simplex-link $left $right $opt(rate)Mb $opt(delay)ms $kind
$ns simplex-link $right $left $opt(rate)Mb $opt(delay)ms DropTail
$ns queue-limit $left $right $opt(limit)
$ns queue-limit $right $left $opt(limit)

set total [expr {$opt(newreno) + $opt(tfrc) + $opt(udp)}]
set starts [new RandomVariable/Uniform]
$starts set min_ 0.0
$starts set max_ 1.0
set tcps {}

proc endpoints {i} {
    global ns opt left right
    set source [$ns node]
    set sink [$ns node]
    $ns duplex-link $source $left $opt(access_rate)Mb $opt(access_delay)ms DropTail
    $ns duplex-link $right $sink $opt(access_rate)Mb $opt(access_delay)ms DropTail
    foreach {a b} [list $source $left $left $source $right $sink $sink $right] { $ns queue-limit $a $b 1000 }
    return [list $source $sink]
}

proc constant_rate {agent rate} {
    global opt
    set app [new Application/Traffic/CBR]
    $app set packetSize_ $opt(packet)
    $app set rate_ ${rate}kb
    $app attach-agent $agent
    return $app
}

for {set i 0} {$i < $total} {incr i} {
    foreach {source sink} [endpoints $i] break
    if {$i < $opt(newreno)} {
        set agent [new Agent/TCP/Newreno]
        set peer [new Agent/TCPSink]
        lappend tcps $agent
    } elseif {$i < $opt(newreno) + $opt(tfrc)} {
        set agent [new Agent/TFRC]
        set peer [new Agent/TFRCSink]
        # SndrType_ 0 sends whether the application has anything or not. One that is held back drops what it cannot send.
        if {$opt(tfrc_rate) > 0} { $agent set SndrType_ 1; $agent set maxqueue_ 2 }
    } else {
        set agent [new Agent/UDP]
        $agent set packetSize_ $opt(packet)
        set peer [new Agent/Null]
    }
    $agent set fid_ $i
    $ns attach-agent $source $agent
    $ns attach-agent $sink $peer
    $ns connect $agent $peer
    if {$i >= $opt(newreno) + $opt(tfrc)} {
        set app [constant_rate $agent $opt(udp_rate)]
    } elseif {$i >= $opt(newreno) && $opt(tfrc_rate) > 0} {
        set app [constant_rate $agent $opt(tfrc_rate)]
    } else {
        set app [new Application/FTP]
        $app attach-agent $agent
    }
    $ns at [$starts value] "$app start"
}

if {$opt(measure)} {
    set queue [$ns monitor-queue $left $right ""]
    set flows [$ns makeflowmon Fid]
    $ns attach-fmon [$ns link $left $right] $flows
    $ns at $opt(from) begin_measuring
}
$ns at $opt(duration) finish

# Counts at the beginning of measuring, to be taken off those at the end.
proc counts {} {
    global queue flows tcps
    set integrator [$queue get-pkts-integrator]
    $integrator newpoint [[Simulator instance] now] [$queue set pkts_]
    set result [list queue.packet_seconds [$integrator set sum_]]
    foreach {name field} {arrived parrivals_ dropped pdrops_ departed pdepartures_ bytes bdepartures_} {
        lappend result queue.$name [$queue set $field]
    }
    foreach flow [$flows flows] {
        set id [$flow set flowid_]
        lappend result flow.$id.arrived [$flow set parrivals_]
        lappend result flow.$id.dropped [$flow set pdrops_]
        lappend result flow.$id.bytes [$flow set bdepartures_]
    }
    set id 0
    foreach tcp $tcps {
        lappend result flow.$id.acked [$tcp set ack_]
        incr id
    }
    return $result
}

proc begin_measuring {} {
    global before
    array set before [counts]
}

proc finish {} {
    global before opt tcps
    if {$opt(measure)} {
        foreach {name value} [counts] {
            if {[info exists before($name)]} { set value [expr {$value - $before($name)}] }
            puts "$name $value"
        }
        # Over the whole run.
        set id 0
        foreach tcp $tcps {
            puts "flow.$id.timeouts [$tcp set nrexmit_]"
            puts "flow.$id.retransmissions [$tcp set nrexmitpack_]"
            incr id
        }
    }
    exit 0
}

$ns run
