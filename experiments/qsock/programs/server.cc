// The Slideshow server: serves pictures to any CORBA client.
//
//   server -ORBendPoint giop:tcp:127.0.0.1:7000
//
// Clients find it at corbaloc:iiop:HOST:PORT/Slideshow, where HOST and PORT are its own, or those of a gateway in front of it.

#include "picture.h"
#include "slideshow.hh"

#include <iostream>

class Repository : public POA_Slides::Slideshow {
public:
    CORBA::ULong count() { return picture::COUNT; }

    Slides::Picture *show(CORBA::ULong number)
    {
        if (number >= picture::COUNT)
            throw Slides::NoSuchPicture(picture::COUNT);
        const picture::Bytes file = picture::file(number);
        Slides::Picture_var answer = new Slides::Picture;
        answer->length(file.size());
        std::memcpy(answer->get_buffer(), file.data(), file.size());
        return answer._retn();
    }
};

int main(int argc, char **argv)
{
    try {
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
        // Its objects have the names by which corbaloc finds them.
        CORBA::Object_var found = orb->resolve_initial_references("omniINSPOA");
        PortableServer::POA_var poa = PortableServer::POA::_narrow(found);
        PortableServer::Servant_var<Repository> repository = new Repository;
        PortableServer::ObjectId_var name = PortableServer::string_to_ObjectId("Slideshow");
        poa->activate_object_with_id(name, repository);
        PortableServer::POAManager_var manager = poa->the_POAManager();
        manager->activate();
        std::cout << "ready" << std::endl;
        orb->run();
    } catch (const CORBA::Exception &error) {
        std::cerr << "server: " << error._name() << std::endl;
        return 1;
    }
}
