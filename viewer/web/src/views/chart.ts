// One chart in the colours of the page.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { short } from "../format";
import type { Palette } from "../palette";

export interface Series {
  name: string;
  colour: string;
  values: (number | null)[];
}

export interface ChartOptions {
  x: number[];
  width: number;
  series: Series[];
  unit: (v: number) => string;
  palette: Palette;
  stacked?: boolean;
  bars?: boolean;
  most?: number;
}

export function chart(into: HTMLElement, o: ChartOptions): uPlot {
  const p = o.palette;
  const sums = new Array<number>(o.x.length).fill(0);
  const columns = o.series.map((s) => (o.stacked ? s.values.map((v, i) => (sums[i]! += v ?? 0)) : s.values));
  // The tallest first, so that each lower one covers what is not its own.
  const order = o.series.map((_, i) => (o.stacked ? o.series.length - 1 - i : i));
  const axis = { stroke: p.muted, grid: { stroke: p.rule, width: 1 }, ticks: { stroke: p.rule, width: 1 }, font: "11px system-ui, sans-serif" };
  const bars = o.bars ? uPlot.paths.bars!({ size: [0.7, 40] }) : undefined;
  // A few requests stand apart; many run together.
  const stack = o.x.length > 300 ? uPlot.paths.stepped!({ align: 1 }) : uPlot.paths.bars!({ size: [0.92, 120] });
  return new uPlot(
    {
      width: o.width,
      height: o.stacked ? 260 : 150,
      scales: { x: { time: false, range: (_, min, max) => [min - 0.6, max + 0.6] }, y: { range: (_, __, max) => [0, o.most ?? Math.max(max * 1.05, 1e-9)] } },
      axes: [
        { ...axis, values: (_, vs) => vs.map((v) => (Number.isInteger(v) && v >= 0 ? String(v + 1) : "")) },
        { ...axis, size: 56, values: (_, vs) => vs.map((v) => o.unit(v)) },
      ],
      legend: { live: o.x.length > 0 },
      cursor: { points: { size: 6 } },
      series: [
        { label: "call", value: (_, v) => (v === null ? "" : String(v + 1)) },
        ...order.map((i) => {
          const s = o.series[i]!;
          return {
            label: s.name,
            stroke: s.colour,
            width: o.stacked ? 1 : 1.5,
            ...(o.stacked || o.bars ? { fill: s.colour } : {}),
            points: { show: o.x.length < 40 && !o.stacked && !o.bars },
            paths: bars ?? (o.stacked ? stack : undefined),
            value: (_: uPlot, __: number | null, ___: number, at: number | null) => (at === null ? "" : o.stacked ? short(s.values[at]) : s.values[at] === null ? "\u2013" : o.unit(s.values[at]!)),
          } as uPlot.Series;
        }),
      ],
    },
    [o.x, ...order.map((i) => columns[i]!)] as uPlot.AlignedData,
    into,
  );
}
