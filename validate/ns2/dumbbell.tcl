# A dumbbell in ns-2, described by key=value arguments, measured between two moments, printed as key value lines.
#
#   ns dumbbell.tcl queue=pi rate=15 delay=50 access_rate=50 access_delay=50 limit=800 duration=100 from=20 \
#      seed=1 newreno=99 tfrc=1 tfrc_rate=128 udp=0 packet=1000 window=10000
#
# Rates are Mbit/s, but for tfrc_rate and udp_rate, which are kbit/s of each application (tfrc_rate 0: it always has
# data). Delays are ms, packets bytes on the wire. Every flow has access links of its own; it starts at a moment drawn
# uniformly from 0..1 s. With sack=1 all TCP is Sack1. duration=0 measure=0 ends when everything is set up: what that costs is not the run's.

array set opt {
    queue pi rate 15 delay 50 access_rate 50 access_delay 50 limit 800 qref 200
    a 0.00001822 b 0.00001816
    adaptive 0 minth 20 maxth 80 maxp 0.1 gentle 1 wait 1 qweight 0 sample 0.1
    duration 100 from 20 to {} seed 1 newreno 100 tfrc 0 udp 0 tfrc_rate 0 udp_rate 0 packet 1000 window 10000 syn 1 sack 0 measure 1
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

if {$opt(to) eq {}} { set opt(to) $opt(duration) }

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
# RED's queue and drops are in packets (ns-2's own: bytes of packets of 500 B), and beyond twice max_th all is dropped
# (use_mark_p_ would make that a draw). A weight of 0 is 1 - exp(-1 / packets a second).
foreach {name value} [list bytes_ false queue_in_bytes_ false mean_pktsize_ $opt(packet) use_mark_p_ false setbit_ false \
        thresh_ $opt(minth) maxthresh_ $opt(maxth) linterm_ [expr {1.0 / $opt(maxp)}] q_weight_ $opt(qweight) \
        gentle_ $opt(gentle) wait_ $opt(wait) adaptive_ $opt(adaptive) \
        alpha_ 0.01 beta_ 0.9 interval_ 0.5 top_ 0.5 bottom_ 0.01] {
    Queue/RED set $name $value
}
Agent/TCP set packetSize_ $opt(packet)
Agent/TCP set window_ $opt(window)
Agent/TCP set useHeaders_ false
Agent/TCP set syn_ $opt(syn)
# TFRC would add 32 B to each packet, and its equation would not know of them.
Agent/TFRC set packetSize_ $opt(packet)
Agent/TFRC set useHeaders_ false

set left [$ns node]
set right [$ns node]
array set kinds {pi PI drop-tail DropTail red RED ared RED}
set kind $kinds($opt(queue))
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
        set agent [new [expr {$opt(sack) ? "Agent/TCP/Sack1" : "Agent/TCP/Newreno"}]]
        set peer [new [expr {$opt(sack) ? "Agent/TCPSink/Sack1" : "Agent/TCPSink"}]]
        lappend tcps $agent
    } elseif {$i < $opt(newreno) + $opt(tfrc)} {
        set agent [new Agent/TFRC]
        set peer [new Agent/TFRCSink]
        # SndrType_ 0 sends whether the application has anything or not. An application that is held back drops packets that it cannot send.
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
    $ns at $opt(to) end_measuring
    if {$kind eq "RED"} { $ns at [expr {$opt(from) + $opt(sample)}] sample_red }
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

proc end_measuring {} {
    global after
    array set after [counts]
}

# RED's average and max_p, every $opt(sample) seconds while it is measured.
set samples {0 0.0 0.0}
proc sample_red {} {
    global samples opt ns left right
    foreach {n average max_p} $samples break
    set red [[$ns link $left $right] queue]
    set samples [list [expr {$n + 1}] [expr {$average + [$red set ave_]}] [expr {$max_p + [$red set cur_max_p_]}]]
    set next [expr {$opt(from) + $opt(sample) * ($n + 2)}]
    if {$next < $opt(to) + $opt(sample) / 2} { $ns at $next sample_red }
}

proc finish {} {
    global before after opt tcps samples
    if {$opt(measure)} {
        foreach {name value} [array get after] {
            if {[info exists before($name)]} { set value [expr {$value - $before($name)}] }
            puts "$name $value"
        }
        foreach {n average max_p} $samples break
        if {$n > 0} { puts "red.average [expr {$average / $n}]\nred.max_p [expr {$max_p / $n}]" }
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
