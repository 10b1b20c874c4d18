// A dumbbell in ns-3: bulk transfers by TCP and UDP flows through one queue disc.
//
//   dumbbell --seed=1 --seconds=45 --warmUp=15 --queue=codel --flows=udp:audio:25:64000:cbr,tcp:75
//
// It prints lines of a name and a number. All sources are on one host, all sinks on another; each host has a link of 10 Gbit/s
// and 75 ms to its router. The queue disc is on r1's link to r2, of 15 Mbit/s. Sizes are those of IP packets: the rate makes
// up for the two bytes of PPP. The device holds one packet besides the one that it sends, as ns-3 allows no less.
//
// The delay of a UDP packet is the time in the queue disc. A drop of CoDel happens after the packet has left the disc's queue.
// So delay and loss are counted where the device takes a packet, not at the disc's trace of departures.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <sstream>
#include <unordered_map>

using namespace ns3;

namespace
{

constexpr double RATE = 15e6;
constexpr uint32_t PACKET = 1000;
constexpr uint32_t UDP_HEADERS = 28;
constexpr uint32_t TCP_HEADERS = 52; // with timestamps
constexpr uint32_t PPP = 2;
constexpr uint16_t UDP_PORT = 10000;
constexpr uint16_t TCP_PORT = 9;

/// A class of UDP flows.
struct UdpClass
{
    std::string name;
    uint32_t count;
    double rate;
    bool poisson;
};

/// What is measured of a UDP flow.
struct UdpFlow
{
    uint64_t left = 0;
    uint64_t dropped = 0;
    std::vector<double> delays;
};

/// The measurement: counts between the end of the warm-up and the end of the run.
struct Measure
{
    bool open = false;
    uint64_t bytes = 0;
    uint64_t packets = 0;
    uint64_t drops = 0;
    std::vector<UdpFlow> flows;
    std::unordered_map<uint64_t, std::pair<Time, uint32_t>> waiting; // UDP packets by their uid
};

Measure measure;

void
Enqueued(Ptr<const QueueDiscItem> item)
{
    auto ip = DynamicCast<const Ipv4QueueDiscItem>(item);
    if (ip->GetHeader().GetProtocol() != UdpL4Protocol::PROT_NUMBER)
    {
        return;
    }
    UdpHeader header;
    item->GetPacket()->PeekHeader(header);
    measure.waiting[item->GetPacket()->GetUid()] = {Simulator::Now(), header.GetDestinationPort() - UDP_PORT};
}

void
Dropped(Ptr<const QueueDiscItem> item)
{
    measure.drops += measure.open;
    auto ip = DynamicCast<const Ipv4QueueDiscItem>(item);
    if (ip->GetHeader().GetProtocol() != UdpL4Protocol::PROT_NUMBER)
    {
        return;
    }
    // RED and PIE drop before the packet is stored.
    UdpHeader header;
    item->GetPacket()->PeekHeader(header);
    measure.flows.at(header.GetDestinationPort() - UDP_PORT).dropped += measure.open;
    measure.waiting.erase(item->GetPacket()->GetUid());
}

void
Left(Ptr<const Packet> packet)
{
    auto found = measure.waiting.find(packet->GetUid());
    if (measure.open)
    {
        measure.packets += 1;
        measure.bytes += packet->GetSize() - PPP;
        if (found != measure.waiting.end())
        {
            UdpFlow& flow = measure.flows.at(found->second.second);
            flow.left += 1;
            flow.delays.push_back((Simulator::Now() - found->second.first).GetSeconds());
        }
    }
    if (found != measure.waiting.end())
    {
        measure.waiting.erase(found);
    }
}

void
SendUdp(Ptr<Socket> socket, double gap, Ptr<ExponentialRandomVariable> draw)
{
    socket->Send(Create<Packet>(PACKET - UDP_HEADERS));
    Simulator::Schedule(Seconds(draw ? draw->GetValue(gap, 0) : gap), &SendUdp, socket, gap, draw);
}

double
Quantile(std::vector<double>& values, double q)
{
    if (values.empty())
    {
        return 0;
    }
    size_t at = std::min(values.size() - 1, static_cast<size_t>(q * values.size()));
    std::nth_element(values.begin(), values.begin() + at, values.end());
    return values[at];
}

/// Sets the queue disc of the bottleneck.
void
ChooseQueue(TrafficControlHelper& helper, const std::string& queue)
{
    auto packets = [](uint32_t n) { return QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, n)); };
    if (queue == "fifo")
    {
        helper.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", packets(1000));
    }
    else if (queue == "codel")
    {
        helper.SetRootQueueDisc("ns3::CoDelQueueDisc", "MaxSize", packets(1000), "MinBytes", UintegerValue(PACKET + 1));
    }
    else if (queue == "fq-codel")
    {
        Config::SetDefault("ns3::CoDelQueueDisc::MinBytes", UintegerValue(PACKET + 1));
        helper.SetRootQueueDisc("ns3::FqCoDelQueueDisc", "MaxSize", packets(10240));
    }
    else if (queue == "pie")
    {
        helper.SetRootQueueDisc("ns3::PieQueueDisc", "MaxSize", packets(1000), "MeanPktSize", UintegerValue(PACKET),
                                "MaxBurstAllowance", TimeValue(MilliSeconds(150)));
    }
    else if (queue == "red" || queue == "ared")
    {
        // ARED = true would overwrite the thresholds and the weight.
        bool adaptive = queue == "ared";
        helper.SetRootQueueDisc("ns3::RedQueueDisc", "MaxSize", packets(1000), "MinTh", DoubleValue(100), "MaxTh",
                                DoubleValue(300), "QW", DoubleValue(adaptive ? 0.0 : 0.000533),
                                "LInterm", DoubleValue(adaptive ? 50 : 10), "AdaptMaxP", BooleanValue(adaptive),
                                "Bottom", DoubleValue(0.01), "MeanPktSize", UintegerValue(PACKET),
                                "LinkBandwidth", DataRateValue(DataRate(static_cast<uint64_t>(RATE))), "LinkDelay",
                                TimeValue(Seconds(0)));
    }
    else
    {
        NS_FATAL_ERROR("no queue " << queue);
    }
}

} // namespace

int
main(int argc, char* argv[])
{
    uint32_t seed = 1;
    double seconds = 45;
    double warmUp = 15;
    std::string queue = "codel";
    std::string flows;
    CommandLine command;
    command.AddValue("seed", "the run's number", seed);
    command.AddValue("seconds", "simulated time", seconds);
    command.AddValue("warmUp", "time before measuring", warmUp);
    command.AddValue("queue", "fifo, codel, fq-codel, pie, red or ared", queue);
    command.AddValue("flows", "udp:NAME:COUNT:BIT/S:cbr|poisson and tcp:COUNT, with commas between", flows);
    command.Parse(argc, argv);
    RngSeedManager::SetSeed(1);
    RngSeedManager::SetRun(seed);

    // NewReno: Sack = false alone leaves limited transmit on, which then retransmits far too much.
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(PACKET - TCP_HEADERS));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 24));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 24));

    NodeContainer nodes(4); // source, r1, r2, sink
    InternetStackHelper().Install(nodes);
    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
    access.SetChannelAttribute("Delay", StringValue("75ms"));
    access.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("100000p"));
    PointToPointHelper middle;
    double scaled = RATE * (PACKET + PPP) / PACKET;
    middle.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(scaled))));
    middle.SetChannelAttribute("Delay", StringValue("0ms"));
    middle.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));
    NetDeviceContainer left = access.Install(nodes.Get(0), nodes.Get(1));
    NetDeviceContainer link = middle.Install(nodes.Get(1), nodes.Get(2));
    NetDeviceContainer right = access.Install(nodes.Get(2), nodes.Get(3));

    TrafficControlHelper control;
    ChooseQueue(control, queue);
    Ptr<QueueDisc> disc = control.Install(link.Get(0)).Get(0);
    if (auto fair = DynamicCast<FqCoDelQueueDisc>(disc))
    {
        fair->SetQuantum(PACKET);
    }
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    for (auto* devices : {&left, &link, &right})
    {
        addresses.Assign(*devices);
        addresses.NewNetwork();
    }
    // Assign has put FqCoDel on every device that had no queue disc.
    TrafficControlHelper none;
    none.Uninstall(left);
    none.Uninstall(right);
    none.Uninstall(link.Get(1));
    link.Get(1)->GetObject<PointToPointNetDevice>()->GetQueue()->SetMaxSize(QueueSize("100000p"));
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    Ipv4Address sink = nodes.Get(3)->GetObject<Ipv4>()->GetAddress(1, 0).GetLocal();

    disc->TraceConnectWithoutContext("Enqueue", MakeCallback(&Enqueued));
    disc->TraceConnectWithoutContext("Drop", MakeCallback(&Dropped));
    link.Get(0)->TraceConnectWithoutContext("MacTx", MakeCallback(&Left));

    auto uniform = CreateObject<UniformRandomVariable>();
    std::vector<UdpClass> classes;
    std::vector<Ptr<PacketSink>> sinks;
    std::istringstream words(flows);
    for (std::string word; std::getline(words, word, ',');) // CommandLine ends a value at a blank
    {
        std::replace(word.begin(), word.end(), ':', ' ');
        std::istringstream fields(word);
        std::string kind;
        fields >> kind;
        if (kind == "udp")
        {
            UdpClass udp;
            std::string pattern;
            fields >> udp.name >> udp.count >> udp.rate >> pattern;
            udp.poisson = pattern == "poisson";
            for (uint32_t i = 0; i < udp.count; ++i)
            {
                uint16_t port = UDP_PORT + measure.flows.size();
                measure.flows.emplace_back();
                Ptr<Socket> receiver = Socket::CreateSocket(nodes.Get(3), UdpSocketFactory::GetTypeId());
                receiver->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
                receiver->SetRecvCallback(MakeCallback(+[](Ptr<Socket> socket) {
                    while (socket->Recv())
                    {
                    }
                }));
                Ptr<Socket> sender = Socket::CreateSocket(nodes.Get(0), UdpSocketFactory::GetTypeId());
                sender->Connect(InetSocketAddress(sink, port));
                auto draw = udp.poisson ? CreateObject<ExponentialRandomVariable>() : nullptr;
                Simulator::Schedule(Seconds(uniform->GetValue(0, 1)), &SendUdp, sender, PACKET * 8 / udp.rate, draw);
            }
            classes.push_back(udp);
        }
        else
        {
            uint32_t count = 0;
            fields >> count;
            for (uint32_t i = 0; i < count; ++i)
            {
                InetSocketAddress there(sink, TCP_PORT + i);
                BulkSendHelper bulk("ns3::TcpSocketFactory", there);
                bulk.SetAttribute("SendSize", UintegerValue(PACKET - TCP_HEADERS));
                bulk.Install(nodes.Get(0)).Start(Seconds(uniform->GetValue(0, 1)));
                PacketSinkHelper receiver("ns3::TcpSocketFactory", there);
                sinks.push_back(DynamicCast<PacketSink>(receiver.Install(nodes.Get(3)).Get(0)));
            }
        }
    }

    std::vector<uint64_t> before(sinks.size());
    Simulator::Schedule(Seconds(warmUp), [&] {
        measure.open = true;
        std::transform(sinks.begin(), sinks.end(), before.begin(), [](auto& one) { return one->GetTotalRx(); });
    });
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();

    double measured = seconds - warmUp;
    std::cout << "utilisation " << measure.bytes * 8 / (RATE * measured) << "\n";
    std::cout << "drops " << static_cast<double>(measure.drops) / (measure.drops + measure.packets) << "\n";
    size_t flow = 0;
    for (const auto& udp : classes)
    {
        double dropped = 0;
        double sent = 0;
        double p50 = 0;
        double p99 = 0;
        for (uint32_t i = 0; i < udp.count; ++i, ++flow)
        {
            UdpFlow& found = measure.flows[flow];
            dropped += found.dropped;
            sent += found.dropped + found.left;
            p50 += Quantile(found.delays, 0.5) / udp.count;
            p99 += Quantile(found.delays, 0.99) / udp.count;
        }
        std::cout << udp.name << ".loss " << dropped / sent << "\n";
        std::cout << udp.name << ".p50 " << p50 << "\n" << udp.name << ".p99 " << p99 << "\n";
    }
    for (size_t i = 0; i < sinks.size(); ++i)
    {
        std::cout << "goodput." << i << " " << (sinks[i]->GetTotalRx() - before[i]) * 8 / measured << "\n";
    }
    Simulator::Destroy();
    return 0;
}
