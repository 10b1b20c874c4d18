// A fat-tree in ns-3, with transfers whose starts, sizes and paths a file lists.
//
//   fattree --k=4 --flows=flows.csv --queue=100 --rate=1000000000 --delay=5000
//
// The file is the output of `cutline check --flows`: flow, group, from, to, start_s, bytes, path, return_path, where a path is the names of
// its nodes with blanks between. It prints lines of a name and a number: `fct.FLOW` is the time from the establishment of the connection
// to the last byte at the receiver, s; `dropped` the packets that device queues have dropped; `run` the processor time of the events, s.
//
// Sizes are those of IP packets of 1500 B: the rate makes up for the two bytes of PPP. There are no queue discs; the queues are those of
// the devices, which hold one packet more while they send.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>
#include <unordered_map>

using namespace ns3;

namespace
{

constexpr uint32_t PACKET = 1500;
constexpr uint32_t HEADERS = 52; // with timestamps
constexpr uint32_t PPP = 2;
constexpr uint16_t FIRST_PORT = 1024;

/// Routes by flow: the port of a flow's receiver is its number, and data differs from acknowledgements by the end that has the port.
class FlowRouting : public Ipv4RoutingProtocol
{
  public:
    /// Sets the interface over which the data of a flow leaves, or its acknowledgements.
    void Set(bool data, uint16_t port, uint32_t interface)
    {
        m_ways[data][port] = interface;
    }

    Ptr<Ipv4Route> RouteOutput(Ptr<Packet>, const Ipv4Header& header, Ptr<NetDevice>, Socket::SocketErrno& error) override
    {
        // A host has one link.
        error = Socket::ERROR_NOTERROR;
        return Route(header.GetDestination(), 1);
    }

    bool RouteInput(Ptr<const Packet> packet,
                    const Ipv4Header& header,
                    Ptr<const NetDevice> device,
                    UnicastForwardCallback forward,
                    MulticastForwardCallback,
                    LocalDeliverCallback deliver,
                    ErrorCallback fail) override
    {
        int32_t interface = m_ipv4->GetInterfaceForDevice(device);
        if (m_ipv4->IsDestinationAddress(header.GetDestination(), interface))
        {
            deliver(packet, header, interface);
            return true;
        }
        TcpHeader tcp;
        packet->PeekHeader(tcp);
        for (auto [data, port] : {std::pair(true, tcp.GetDestinationPort()), std::pair(false, tcp.GetSourcePort())})
        {
            auto found = m_ways[data].find(port);
            if (found != m_ways[data].end())
            {
                forward(Route(header.GetDestination(), found->second), packet, header);
                return true;
            }
        }
        fail(packet, header, Socket::ERROR_NOROUTETOHOST);
        return false;
    }

    void NotifyInterfaceUp(uint32_t) override
    {
    }

    void NotifyInterfaceDown(uint32_t) override
    {
    }

    void NotifyAddAddress(uint32_t, Ipv4InterfaceAddress) override
    {
    }

    void NotifyRemoveAddress(uint32_t, Ipv4InterfaceAddress) override
    {
    }

    void SetIpv4(Ptr<Ipv4> ipv4) override
    {
        m_ipv4 = ipv4;
    }

    void PrintRoutingTable(Ptr<OutputStreamWrapper>, Time::Unit) const override
    {
    }

  private:
    Ptr<Ipv4Route> Route(Ipv4Address to, uint32_t interface)
    {
        auto route = Create<Ipv4Route>();
        route->SetDestination(to);
        route->SetSource(m_ipv4->GetAddress(interface, 0).GetLocal());
        route->SetGateway(to);
        route->SetOutputDevice(m_ipv4->GetNetDevice(interface));
        return route;
    }

    Ptr<Ipv4> m_ipv4;
    std::unordered_map<uint16_t, uint32_t> m_ways[2];
};

/// A host or a switch.
struct Place
{
    Ptr<Node> node;
    Ptr<FlowRouting> routing;
    std::map<std::string, uint32_t> interfaces; // by the name of the neighbour
};

/// A transfer.
struct Transfer
{
    std::string name;
    uint64_t bytes = 0;
    uint64_t written = 0;
    uint64_t received = 0;
    bool closed = false;
    double established = -1;
    double ended = -1;
};

std::map<std::string, Place> places;
std::vector<Transfer> transfers;
uint64_t dropped = 0;
size_t left = 0;

Place&
At(const std::string& name)
{
    Place& place = places[name];
    if (!place.node)
    {
        place.node = CreateObject<Node>();
    }
    return place;
}

/// Two nodes to join, and whether the first one is a host.
struct Joint
{
    std::string from;
    std::string to;
    bool access;
};

/// The links of Al-Fares et al. 2008, with the names of Cutline.
std::vector<Joint>
FatTree(uint32_t k)
{
    std::vector<Joint> joints;
    uint32_t half = k / 2;
    uint32_t host = 0;
    auto name = [](const char* kind, uint32_t pod, uint32_t number) {
        return std::string(kind) + std::to_string(pod) + "-" + std::to_string(number);
    };
    for (uint32_t pod = 1; pod <= k; ++pod)
    {
        for (uint32_t switches = 0; switches < half; ++switches)
        {
            for (uint32_t core = 1; core <= half; ++core)
            {
                joints.push_back({name("agg", pod, switches + 1), "core" + std::to_string(switches * half + core), false});
            }
            for (uint32_t aggregation = 1; aggregation <= half; ++aggregation)
            {
                joints.push_back({name("edge", pod, switches + 1), name("agg", pod, aggregation), false});
            }
            for (uint32_t i = 0; i < half; ++i)
            {
                joints.push_back({"h" + std::to_string(++host), name("edge", pod, switches + 1), true});
            }
        }
    }
    return joints;
}

/// Sets the ways of a flow along a path of names.
std::vector<std::string>
SetWays(const std::string& path, bool data, uint16_t port)
{
    std::istringstream words(path);
    std::vector<std::string> names{std::istream_iterator<std::string>(words), {}};
    for (size_t i = 1; i + 1 < names.size(); ++i)
    {
        Place& place = places.at(names[i]);
        place.routing->Set(data, port, place.interfaces.at(names[i + 1]));
    }
    return names;
}

void
Received(size_t index, Ptr<const Packet> packet, const Address&)
{
    Transfer& transfer = transfers[index];
    transfer.received += packet->GetSize();
    if (transfer.received == transfer.bytes)
    {
        transfer.ended = Simulator::Now().GetSeconds();
        if (--left == 0)
        {
            Simulator::Stop();
        }
    }
}

/// Writes as much of a transfer as the socket takes.
void
Write(size_t index, Ptr<Socket> socket, uint32_t)
{
    Transfer& transfer = transfers[index];
    while (transfer.written < transfer.bytes && socket->GetTxAvailable() > 0)
    {
        uint64_t part = std::min<uint64_t>({transfer.bytes - transfer.written, socket->GetTxAvailable(), PACKET - HEADERS});
        int sent = socket->Send(Create<Packet>(part));
        if (sent <= 0)
        {
            return;
        }
        transfer.written += sent;
    }
    if (transfer.written == transfer.bytes && !transfer.closed)
    {
        transfer.closed = true;
        socket->Close();
    }
}

void
Connected(size_t index, Ptr<Socket> socket)
{
    transfers[index].established = Simulator::Now().GetSeconds();
    Write(index, socket, 0);
}

void
Start(size_t index, Ptr<Node> node, InetSocketAddress to)
{
    Ptr<Socket> socket = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
    socket->SetConnectCallback(MakeBoundCallback(&Connected, index), MakeNullCallback<void, Ptr<Socket>>());
    socket->SetSendCallback(MakeBoundCallback(&Write, index));
    socket->Bind();
    socket->Connect(to);
}

double
ProcessorTime()
{
    return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

} // namespace

int
main(int argc, char* argv[])
{
    uint32_t k = 4;
    uint32_t queue = 100;
    uint64_t rate = 1000000000;
    uint64_t delay = 5000;
    double seconds = 60;
    std::string flows;
    CommandLine command;
    command.AddValue("k", "the ports of a switch", k);
    command.AddValue("flows", "the file of transfers", flows);
    command.AddValue("queue", "the packets that the queue of a switch holds", queue);
    command.AddValue("rate", "the rate of each link, bit/s", rate);
    command.AddValue("delay", "the delay of each link, ns", delay);
    command.AddValue("seconds", "the longest simulated time", seconds);
    command.Parse(argc, argv);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(10)));
    // Shorter than the timeout, or a lone segment would always be sent again.
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(1)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(PACKET - HEADERS));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 24));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 24));
    // The handshake is not measured; lost, it is soon repeated.
    Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(MilliSeconds(10)));
    Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(1000));
    Config::SetDefault("ns3::TcpSocket::ConnCount", UintegerValue(1000));

    std::vector<Joint> joints = FatTree(k);
    for (const Joint& joint : joints)
    {
        At(joint.from);
        At(joint.to);
    }
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    for (auto& [name, place] : places)
    {
        stack.Install(place.node);
        place.routing = CreateObject<FlowRouting>();
        place.node->GetObject<Ipv4>()->SetRoutingProtocol(place.routing);
        // A device with a full queue is stopped, and the layer above it drops.
        place.node->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext(
            "TcDrop", MakeCallback(+[](Ptr<const Packet>) { ++dropped; }));
    }
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rate * (PACKET + PPP) / PACKET)));
    link.SetChannelAttribute("Delay", TimeValue(NanoSeconds(delay)));
    uint32_t subnet = Ipv4Address("10.0.0.0").Get();
    for (const Joint& joint : joints)
    {
        NetDeviceContainer devices;
        std::array<Place*, 2> ends{&At(joint.from), &At(joint.to)};
        devices = link.Install(ends[0]->node, ends[1]->node);
        for (uint32_t end : {0, 1})
        {
            auto device = DynamicCast<PointToPointNetDevice>(devices.Get(end));
            uint32_t packets = joint.access && end == 0 ? 1000 : queue;
            device->GetQueue()->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, packets));
            Ptr<Ipv4> ipv4 = ends[end]->node->GetObject<Ipv4>();
            uint32_t interface = ipv4->AddInterface(device);
            ipv4->AddAddress(interface, Ipv4InterfaceAddress(Ipv4Address(subnet + 1 + end), Ipv4Mask("255.255.255.252")));
            ipv4->SetUp(interface);
            ends[end]->interfaces[end == 0 ? joint.to : joint.from] = interface;
        }
        subnet += 4;
    }

    std::ifstream file(flows);
    std::string line;
    std::getline(file, line); // the names of the columns
    while (std::getline(file, line))
    {
        std::istringstream fields(line);
        std::array<std::string, 8> values;
        for (std::string& value : values)
        {
            std::getline(fields, value, ',');
        }
        size_t index = transfers.size();
        NS_ABORT_MSG_IF(index >= 60000, "more transfers than ports");
        uint16_t port = FIRST_PORT + index;
        Transfer transfer;
        transfer.name = values[0];
        transfer.bytes = std::stoull(values[5]);
        transfers.push_back(transfer);
        SetWays(values[6], true, port);
        SetWays(values[7], false, port);
        Ptr<Node> from = places.at(values[2]).node;
        Ptr<Node> to = places.at(values[3]).node;
        Ipv4Address address = to->GetObject<Ipv4>()->GetAddress(1, 0).GetLocal();
        PacketSinkHelper receiver("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
        Ptr<Application> sink = receiver.Install(to).Get(0);
        sink->TraceConnectWithoutContext("Rx", MakeBoundCallback(&Received, index));
        double start = std::stod(values[4]);
        Simulator::Schedule(Seconds(start), &Start, index, from, InetSocketAddress(address, port));
    }
    left = transfers.size();
    double before = ProcessorTime();
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    std::cout << "run " << ProcessorTime() - before << "\n";
    std::cout << "dropped " << dropped << "\n";
    std::cout.precision(12);
    for (const Transfer& transfer : transfers)
    {
        if (transfer.ended >= 0)
        {
            std::cout << "fct." << transfer.name << " " << transfer.ended - transfer.established << "\n";
        }
    }
    Simulator::Destroy();
    return 0;
}
