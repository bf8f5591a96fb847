"""A small SVG of one drain, or of two side by side: leaders left over time, and the gap of each partition that was written."""

from html import escape

WIDTH, HEIGHT, LEFT, TOP, GAP = 720, 240, 70, 40, 70
COLOURS = ("#1f6fb4", "#c4501b")


def nice_ceiling(v):
    """The next 1, 2 or 5 times a power of ten."""
    scale = 1
    while True:
        for step in (1, 2, 5):
            if v <= step * scale:
                return step * scale
        scale *= 10


class Panel:
    def __init__(self, index, title, x_max, y_max, x_label, y_label):
        self.top = TOP + index * (HEIGHT + GAP)
        self.x_max, self.y_max = nice_ceiling(max(x_max, 1)), nice_ceiling(max(y_max, 1))
        self.out = [f'<text x="{LEFT}" y="{self.top - 10}" class="title">{escape(title)}</text>']
        for i in range(6):
            x, y = self.x_max * i / 5, self.y_max * i / 5
            self.out.append(f'<path d="M{self.x(x):.1f} {self.top}V{self.top + HEIGHT}M{LEFT} {self.y(y):.1f}H{LEFT + WIDTH}" class="grid"/>')
            self.out.append(f'<text x="{self.x(x):.1f}" y="{self.top + HEIGHT + 16}" text-anchor="middle">{x:g}</text>')
            self.out.append(f'<text x="{LEFT - 6}" y="{self.y(y) + 4:.1f}" text-anchor="end">{y:g}</text>')
        self.out.append(f'<text x="{LEFT + WIDTH}" y="{self.top + HEIGHT + 32}" text-anchor="end">{escape(x_label)}</text>')
        self.out.append(f'<text x="{LEFT}" y="{self.top + HEIGHT + 32}">{escape(y_label)}</text>')

    def x(self, v):
        return LEFT + WIDTH * v / self.x_max

    def y(self, v):
        return self.top + HEIGHT * (1 - v / self.y_max)

    def steps(self, points, colour):
        d = f"M{self.x(points[0][0]):.1f} {self.y(points[0][1]):.1f}"
        last = None
        for x, y in points[1:]:
            spot = (round(self.x(max(x, 0)), 1), round(self.y(y), 1))
            if spot != last:
                d += f"H{spot[0]}V{spot[1]}"
            last = spot
        self.out.append(f'<path d="{d}H{LEFT + WIDTH}" fill="none" stroke="{colour}" stroke-width="2"/>')

    def dots(self, points, colour):
        self.out += [f'<circle cx="{self.x(max(x, 0)):.1f}" cy="{self.y(y):.1f}" r="3" fill="{colour}" fill-opacity=".6"/>' for x, y in points]

    def level(self, y, text, colour):
        self.out.append(f'<path d="M{LEFT} {self.y(y):.1f}H{LEFT + WIDTH}" stroke="{colour}" stroke-dasharray="4 4"/>')
        self.out.append(f'<text x="{LEFT + WIDTH + 4}" y="{self.y(y) + 4:.1f}" fill="{colour}">{escape(text)}</text>')


def plot(path, title, runs):
    """@runs: [{"name", "moves": [(ms, leaders left)], "gaps": [(ms when it began, ms)], "p50", "p99"}]"""
    x_max = max(r["moves"][-1][0] for r in runs)
    leaders = Panel(0, f"{title}: leaders left", x_max, max(r["moves"][0][1] for r in runs), "ms after the request", "partitions")
    gap_x = max([g[0] for r in runs for g in r["gaps"]] + [1])
    gap_y = max([g[1] for r in runs for g in r["gaps"]] + [1])
    gaps = Panel(1, "write gap of each written partition, by when it began", gap_x, gap_y, "ms after the request", "gap, ms")
    legend = []
    for i, r in enumerate(runs):
        colour = COLOURS[i % len(COLOURS)]
        leaders.steps(r["moves"], colour)
        gaps.dots(r["gaps"], colour)
        gaps.level(r["p50"], f"p50 {r['p50']:g}", colour)
        gaps.level(r["p99"], f"p99 {r['p99']:g}", colour)
        legend.append(f'<text x="{LEFT + WIDTH - 6}" y="{TOP + 18 + 16 * i}" text-anchor="end" fill="{colour}">{escape(r["name"])}</text>')
    width, height = LEFT + WIDTH + 90, TOP + 2 * (HEIGHT + GAP)
    style = "text{font:12px sans-serif;fill:currentColor}.title{font-size:14px}.grid{stroke:#999;stroke-opacity:.3}"
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
        f'<style>{style}</style><rect width="100%" height="100%" fill="#fff"/>' + "\n".join(leaders.out + gaps.out + legend) + "</svg>\n"
    )
