#include "log/decompress.h"

#include <endian.h>
#include <errno.h>
#include <lz4frame.h>
#include <snappy-c.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#define STEP              65536
#define GZIP_WINDOW       (15 + 16) /* 32 KiB window, gzip header */
#define XERIAL_HEAD_BYTES 16        /* magic, version, lowest compatible version */

static const uint8_t XERIAL_MAGIC[8] = {0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0};

static size_t room(const struct buf *b)
{
        return b->cap - b->len;
}

/* Make room for some output, less than a whole step when the ceiling is near. */
static int grow(struct buf *out)
{
        int r = buf_reserve(out, STEP);

        return r == -EMSGSIZE ? buf_reserve(out, 1) : r;
}

static int unzip(z_stream *z, struct buf *out)
{
        for (;;) {
                size_t n;
                int r = grow(out), status;

                if (r < 0)
                        return r;
                n = room(out);
                z->next_out = out->data + out->len;
                z->avail_out = (uInt)n;
                status = inflate(z, Z_NO_FLUSH);
                out->len += n - z->avail_out;
                if (status == Z_STREAM_END)
                        return 0;
                if (status == Z_MEM_ERROR)
                        return -ENOMEM;
                if (status != Z_OK)
                        return -EBADMSG; /* also Z_BUF_ERROR: the input ended early */
        }
}

static int decompress_gzip(const void *data, size_t len, struct buf *out)
{
        z_stream z = {.next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)len}; /* not written to */
        int r;

        if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
                return -ENOMEM;
        r = unzip(&z, out);
        (void)inflateEnd(&z);
        return r;
}

static int snappy_block(const char *data, size_t len, struct buf *out)
{
        size_t n;
        int r;

        if (snappy_uncompressed_length(data, len, &n) != SNAPPY_OK)
                return -EBADMSG;
        /* The length is the sender's word: a block of this size cannot unpack to more than 64 bytes for 3. */
        if (n / 32 > len)
                return -EBADMSG;
        r = buf_reserve(out, MAX(n, (size_t)1)); /* so that there is an address to write nothing to */
        if (r < 0)
                return r;
        if (snappy_uncompress(data, len, (char *)out->data + out->len, &n) != SNAPPY_OK)
                return -EBADMSG;
        out->len += n;
        return 0;
}

static int decompress_snappy(const void *data, size_t len, struct buf *out)
{
        const char *at = data;

        if (len < XERIAL_HEAD_BYTES || memcmp(data, XERIAL_MAGIC, sizeof(XERIAL_MAGIC)) != 0)
                return snappy_block(data, len, out);
        at += XERIAL_HEAD_BYTES; /* the version numbers vary among writers and mean nothing */
        len -= XERIAL_HEAD_BYTES;
        while (len > 0) {
                uint32_t n;
                int r;

                if (len < sizeof(n))
                        return -EBADMSG;
                memcpy(&n, at, sizeof(n));
                n = be32toh(n);
                at += sizeof(n);
                len -= sizeof(n);
                if (n > len)
                        return -EBADMSG;
                r = snappy_block(at, n, out);
                if (r < 0)
                        return r;
                at += n;
                len -= n;
        }
        return 0;
}

static int unlz4(LZ4F_dctx *ctx, const uint8_t *at, size_t len, struct buf *out)
{
        size_t hint = 1;

        while (hint != 0) {
                size_t in = len, n;
                int r = grow(out);

                if (r < 0)
                        return r;
                n = room(out);
                hint = LZ4F_decompress(ctx, out->data + out->len, &n, at, &in, NULL);
                if (LZ4F_isError(hint) || (in == 0 && n == 0 && hint != 0))
                        return -EBADMSG; /* damaged, or the input ended early */
                out->len += n;
                at += in;
                len -= in;
        }
        return 0;
}

static int decompress_lz4(const void *data, size_t len, struct buf *out)
{
        LZ4F_dctx *ctx;
        int r;

        if (LZ4F_isError(LZ4F_createDecompressionContext(&ctx, LZ4F_VERSION)))
                return -ENOMEM;
        r = unlz4(ctx, data, len, out);
        (void)LZ4F_freeDecompressionContext(ctx);
        return r;
}

static int unzstd(ZSTD_DCtx *ctx, ZSTD_inBuffer *in, struct buf *out)
{
        size_t hint = 1;

        while (hint != 0) {
                ZSTD_outBuffer o;
                size_t before = in->pos;
                int r = grow(out);

                if (r < 0)
                        return r;
                o = (ZSTD_outBuffer){.dst = out->data + out->len, .size = room(out)};
                hint = ZSTD_decompressStream(ctx, &o, in);
                if (ZSTD_isError(hint) || (hint != 0 && o.pos == 0 && in->pos == before))
                        return -EBADMSG;
                out->len += o.pos;
        }
        return 0;
}

static int decompress_zstd(const void *data, size_t len, struct buf *out)
{
        ZSTD_inBuffer in = {.src = data, .size = len};
        ZSTD_DCtx *ctx = ZSTD_createDCtx();
        int r;

        if (!ctx)
                return -ENOMEM;
        r = unzstd(ctx, &in, out);
        (void)ZSTD_freeDCtx(ctx);
        return r;
}

static int copy(const void *data, size_t len, struct buf *out)
{
        return buf_append(out, data, len);
}

int decompress(enum record_codec codec, const void *data, size_t len, struct buf *out)
{
        static int (*const codecs[N_RECORD_CODECS])(const void *, size_t, struct buf *) = {
                [RECORD_NONE] = copy,
                [RECORD_GZIP] = decompress_gzip,
                [RECORD_SNAPPY] = decompress_snappy,
                [RECORD_LZ4] = decompress_lz4,
                [RECORD_ZSTD] = decompress_zstd,
        };

        if ((unsigned)codec >= N_RECORD_CODECS)
                return -ENOPROTOOPT;
        return codecs[codec](data, len, out);
}
