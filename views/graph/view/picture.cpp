#include "views/graph/view/picture.h"

#include <zlib.h>

#include <QImage>
#include <QtEndian>
#include <algorithm>
#include <cmath>
#include <vector>

#include "views/base/quantities.h"

namespace cleave::views {
namespace {

constexpr double kSmallPixels = 25e6, kMostPixels = 400e6;
constexpr int kTileWidth = 8192;     // Qt's rasteriser ends at 32767
constexpr double kBandPixels = 4e6;  // pixels per band in memory
constexpr std::size_t kChunkBytes = 1 << 18;

/// PNG (ISO/IEC 15948), 8 bits RGB, rows as they come.
class PngWriter {
 public:
  PngWriter(QIODevice& device, int width, int height) : m_device(device), m_out(kChunkBytes) {
    m_before.assign(static_cast<std::size_t>(width) * 3, 0);
    m_row.resize(m_before.size() + 1);
    m_isGood = deflateInit(&m_stream, Z_BEST_SPEED) == Z_OK && m_device.write("\x89PNG\r\n\x1a\n", 8) == 8;
    uchar header[13] = {};
    qToBigEndian<quint32>(static_cast<quint32>(width), header);
    qToBigEndian<quint32>(static_cast<quint32>(height), header + 4);
    header[8] = 8, header[9] = 2;
    writeChunk("IHDR", header, sizeof header);
  }
  ~PngWriter() { deflateEnd(&m_stream); }

  /// Writes `width` RGB triples. Rows differ little from the row above, so only the difference is compressed.
  void addRow(const uchar* pixels) {
    constexpr uchar kUp = 2;
    m_row[0] = kUp;
    for (std::size_t i = 0; i < m_before.size(); ++i) m_row[i + 1] = static_cast<uchar>(pixels[i] - m_before[i]);
    std::copy(pixels, pixels + m_before.size(), m_before.begin());
    m_stream.next_in = m_row.data();
    m_stream.avail_in = static_cast<uInt>(m_row.size());
    while (m_isGood && m_stream.avail_in > 0) pack(Z_NO_FLUSH);
  }
  bool finish() {
    while (m_isGood && pack(Z_FINISH) != Z_STREAM_END) continue;
    writeChunk("IEND", nullptr, 0);
    return m_isGood;
  }
  bool isGood() const { return m_isGood; }

 private:
  int pack(int flush) {
    m_stream.next_out = m_out.data();
    m_stream.avail_out = static_cast<uInt>(m_out.size());
    const int answer = deflate(&m_stream, flush);
    m_isGood = m_isGood && answer != Z_STREAM_ERROR;
    const std::size_t packed = m_out.size() - m_stream.avail_out;
    if (packed > 0) writeChunk("IDAT", m_out.data(), packed);
    return answer;
  }
  void writeChunk(const char* name, const uchar* data, std::size_t size) {
    uchar number[4];
    const auto put = [&](const void* bytes, std::size_t count) {
      m_isGood = m_isGood && m_device.write(static_cast<const char*>(bytes), static_cast<qint64>(count)) ==
                                 static_cast<qint64>(count);
    };
    qToBigEndian<quint32>(static_cast<quint32>(size), number);
    put(number, 4);
    put(name, 4);
    if (size > 0) put(data, size);
    uLong crc = crc32(0, reinterpret_cast<const Bytef*>(name), 4);
    if (size > 0) crc = crc32(crc, data, static_cast<uInt>(size));
    qToBigEndian<quint32>(static_cast<quint32>(crc), number);
    put(number, 4);
  }

  QIODevice& m_device;
  z_stream m_stream{};
  std::vector<uchar> m_out, m_row, m_before;
  bool m_isGood = true;
};

/// Draws rows [top, top + height) into RGB triples, tile by tile.
void drawBand(std::vector<uchar>& band, int width, int top, int height, double zoom, const PaintPicture& paint) {
  for (int left = 0; left < width; left += kTileWidth) {
    QImage tile(std::min(kTileWidth, width - left), height, QImage::Format_RGB888);
    tile.fill(Qt::white);
    QPainter painter(&tile);
    painter.translate(-left, -top);
    painter.scale(zoom, zoom);
    paint(painter, QRectF(left / zoom, top / zoom, tile.width() / zoom, height / zoom), zoom);
    painter.end();
    for (int y = 0; y < height; ++y)
      std::copy_n(tile.constScanLine(y), static_cast<std::size_t>(tile.width()) * 3,
                  band.begin() + (static_cast<std::ptrdiff_t>(y) * width + left) * 3);
  }
}

}  // namespace

Result<QString> writePng(QIODevice& out, const QSizeF& size, const PaintPicture& paint) {
  const double pixels = size.width() * size.height();
  const double zoom = 4 * pixels <= kSmallPixels ? 2 : pixels <= kMostPixels ? 1 : std::sqrt(kMostPixels / pixels);
  const int width = std::max(1, static_cast<int>(std::ceil(size.width() * zoom)));
  const int height = std::max(1, static_cast<int>(std::ceil(size.height() * zoom)));
  PngWriter png(out, width, height);
  const int bandHeight = std::clamp(static_cast<int>(kBandPixels / width), 16, 2048);
  std::vector<uchar> band(static_cast<std::size_t>(width) * static_cast<std::size_t>(bandHeight) * 3);
  for (int top = 0; top < height && png.isGood(); top += bandHeight) {
    const int rows = std::min(bandHeight, height - top);
    drawBand(band, width, top, rows, zoom, paint);
    for (int y = 0; y < rows; ++y)
      png.addRow(band.data() + static_cast<std::size_t>(y) * static_cast<std::size_t>(width) * 3);
  }
  if (!png.finish())
    return fail(ErrorCode::Environment, "The picture was not written: {}.", out.errorString().toStdString());
  if (zoom >= 1) return QString();
  return QStringLiteral("Drawn at %1 of full size: at 100 % the picture would have %2 million pixels.")
      .arg(percentText(zoom), countText(static_cast<std::uint64_t>(pixels / 1e6)));
}

}  // namespace cleave::views
