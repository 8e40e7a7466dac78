/** The operations of `/livez`, `/readyz`, `/metrics` and `/archive`. */
import { type Operation, type OperationGroup, text } from "../../formats/openapi/index.ts"

const plain = (id: string, summary: string, description: string): Operation => ({
  id,
  summary,
  responses: {
    200: { description, content: { "text/plain": text }, headers: ["Cache-Control"] }
  }
})

export const observabilityOperations: OperationGroup = {
  tag: "operation",
  about: "For who runs the service: probes, measures, and everything in one file.",
  schemas: {},
  operations: {
    "GET /livez": plain("getLive", "Whether the process lives", "It lives"),
    "GET /readyz": plain("getReady", "Whether this node takes requests; else 503", "It does"),
    "GET /metrics": plain("getMetrics", "Measures, in the text format of Prometheus", "Measures"),
    "GET /archive": {
      id: "getArchive",
      summary: "Everything that is kept, as an archive that `restante restore` takes",
      needs: "role",
      problems: ["conflict"],
      responses: {
        200: {
          description: "The archive; it is whole when its last line says so",
          content: { "application/octet-stream": {} },
          headers: ["Cache-Control", "Content-Disposition"]
        }
      }
    }
  }
}
