/** What a node exports to an OpenTelemetry collector: its traces and its metrics. */
export { startTelemetry, type Telemetry } from "./telemetry.ts"
