// The pictures of the Slideshow: PNG files of 18 to 58 KB, the same on every machine. They are stored without compression, so that
// their size follows from their number.

#ifndef PICTURE_H
#define PICTURE_H

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace picture {

typedef std::vector<std::uint8_t> Bytes;

const std::uint32_t COUNT = 41;
const std::uint32_t WIDTH = 128;
const std::uint8_t SIGNATURE[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

// The picture of a number has 1 KB more than the one before it.
inline std::uint32_t height(std::uint32_t number) { return (18000 + 1000 * number) / (1 + 3 * WIDTH) + 1; }

inline std::uint32_t crc32(const std::uint8_t *bytes, std::size_t length)
{
    std::uint32_t crc = 0xffffffff;
    for (std::size_t i = 0; i < length; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
    }
    return ~crc;
}

inline std::uint32_t adler32(const Bytes &bytes)
{
    std::uint32_t a = 1, b = 0;
    for (std::size_t i = 0; i < bytes.size(); i++) {
        a = (a + bytes[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

inline void put(Bytes &to, std::uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        to.push_back(value >> shift & 0xff);
}

inline std::uint32_t get(const std::uint8_t *from)
{
    return std::uint32_t(from[0]) << 24 | from[1] << 16 | from[2] << 8 | from[3];
}

inline void chunk(Bytes &to, const char *type, const Bytes &content)
{
    put(to, content.size());
    const std::size_t start = to.size();
    to.insert(to.end(), type, type + 4);
    to.insert(to.end(), content.begin(), content.end());
    put(to, crc32(&to[start], to.size() - start));
}

// The file of a picture: a gradient that moves with the number.
inline Bytes file(std::uint32_t number)
{
    Bytes header, rows;
    put(header, WIDTH);
    put(header, height(number));
    const std::uint8_t colour[] = {8, 2, 0, 0, 0};
    header.insert(header.end(), colour, colour + 5);
    for (std::uint32_t y = 0; y < height(number); y++) {
        rows.push_back(0);
        for (std::uint32_t x = 0; x < WIDTH; x++) {
            rows.push_back(2 * x + 6 * number);
            rows.push_back(2 * y);
            rows.push_back((x ^ y) + number);
        }
    }
    // A stored block of deflate holds at most 65,535 bytes, which is more than any picture has.
    const std::uint16_t length = rows.size();
    Bytes data = {0x78, 0x01, 1, std::uint8_t(length), std::uint8_t(length >> 8), std::uint8_t(~length), std::uint8_t(~length >> 8)};
    data.insert(data.end(), rows.begin(), rows.end());
    put(data, adler32(rows));
    Bytes whole(SIGNATURE, SIGNATURE + 8);
    chunk(whole, "IHDR", header);
    chunk(whole, "IDAT", data);
    chunk(whole, "IEND", Bytes());
    return whole;
}

// Whether these bytes are the whole file of this picture, by its header and the check sums of its chunks.
inline bool is_intact(std::uint32_t number, const std::uint8_t *bytes, std::size_t length)
{
    if (length < 8 || std::memcmp(bytes, SIGNATURE, 8) != 0)
        return false;
    std::size_t at = 8;
    std::string types;
    while (length - at >= 12) {
        const std::size_t size = get(bytes + at);
        if (size > length - at - 12 || get(bytes + at + 8 + size) != crc32(bytes + at + 4, size + 4))
            return false;
        if (types.empty() && (size < 8 || get(bytes + at + 12) != height(number)))
            return false;
        types.append(reinterpret_cast<const char *>(bytes + at + 4), 4);
        at += 12 + size;
    }
    return at == length && types == "IHDRIDATIEND";
}

} // namespace picture

#endif
