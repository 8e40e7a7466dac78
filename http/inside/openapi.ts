/** What `/livez`, `/readyz` and `/metrics` answer. */
import { type Area, type Operation } from "../openapi/operation.ts"
import { text } from "../openapi/schema.ts"

const plain = (id: string, summary: string, description: string): Operation => ({
  id,
  summary,
  answers: {
    200: { description, content: { "text/plain": text }, headers: ["Cache-Control"] }
  }
})

export const inside: Area = {
  tag: "operation",
  about: "For who runs the service: probes and measures.",
  schemas: {},
  operations: {
    "GET /livez": plain("getLive", "Whether the process lives", "It lives"),
    "GET /readyz": plain("getReady", "Whether this node takes requests; else 503", "It does"),
    "GET /metrics": plain("getMetrics", "Measures, in the text format of Prometheus", "Measures")
  }
}
