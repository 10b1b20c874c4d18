// The Slideshow client: asks for pictures at a rate, and says when each came.
//
//   client HOST:PORT RATE SECONDS -ORBclientCallTimeOutPeriod 5000
//
// It prints a line for each picture: its number, when it was asked for and when it was there (seconds of the monotonic clock), its
// bytes, and `intact`, `damaged`, or why it did not come. A picture that takes longer than the time between two delays the next one.

#include "picture.h"
#include "slideshow.hh"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

typedef std::chrono::steady_clock Clock;

static double seconds(Clock::time_point at)
{
    return std::chrono::duration<double>(at.time_since_epoch()).count();
}

static void print(CORBA::ULong number, Clock::time_point asked, std::size_t bytes, const char *outcome)
{
    std::printf("%u %.6f %.6f %zu %s\n", unsigned(number), seconds(asked), seconds(Clock::now()), bytes, outcome);
    std::fflush(stdout);
}

int main(int argc, char **argv)
{
    try {
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
        const double rate = argc == 4 ? std::atof(argv[2]) : 0, time = argc == 4 ? std::atof(argv[3]) : 0;
        if (!(rate > 0 && time > 0)) {
            std::fprintf(stderr, "usage: client HOST:PORT RATE SECONDS\n");
            return 2;
        }
        const std::string place = std::string("corbaloc:iiop:1.2@") + argv[1] + "/Slideshow";
        CORBA::Object_var found = orb->string_to_object(place.c_str());
        // Whether it is one shows when it is asked.
        Slides::Slideshow_var show = Slides::Slideshow::_unchecked_narrow(found);
        const Clock::time_point start = Clock::now();
        for (CORBA::ULong asked = 0; asked < rate * time; asked++) {
            std::this_thread::sleep_until(start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(asked / rate)));
            // Large and small ones alternate.
            const CORBA::ULong number = 7 * asked % picture::COUNT;
            const Clock::time_point at = Clock::now();
            if (at - start >= std::chrono::duration<double>(time))
                break;
            try {
                Slides::Picture_var file = show->show(number);
                const bool intact = picture::is_intact(number, file->get_buffer(), file->length());
                print(number, at, file->length(), intact ? "intact" : "damaged");
            } catch (const CORBA::Exception &error) {
                print(number, at, 0, error._name());
            }
        }
    } catch (const CORBA::Exception &error) {
        std::fprintf(stderr, "client: %s\n", error._name());
        return 1;
    }
}
