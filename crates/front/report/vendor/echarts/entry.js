// What pages of nandscape draw with: nothing else of ECharts is in echarts.min.js.
export { init } from "echarts/core";
import { use } from "echarts/core";
import { BarChart, HeatmapChart, LineChart, ScatterChart } from "echarts/charts";
import {
  GridComponent,
  LegendPlainComponent,
  MarkLineComponent,
  TooltipComponent,
  VisualMapContinuousComponent,
} from "echarts/components";
import { SVGRenderer } from "echarts/renderers";

use([
  BarChart, GridComponent, HeatmapChart, LegendPlainComponent, LineChart,
  MarkLineComponent, ScatterChart, SVGRenderer, TooltipComponent, VisualMapContinuousComponent,
]);
