/** The operations of `/livez`, `/readyz`, `/metrics` and `/archive`. */
import { text } from "../../formats/openapi/index.ts"
import type { ResourceDefinition, ResourceOperation } from "../../resource.ts"
import { getArchive, getLive, getMetrics, getReady } from "./observability-handlers.ts"

const plain = (
  handle: ResourceOperation["handle"],
  id: string,
  summary: string,
  description: string
): ResourceOperation => ({
  handle,
  id,
  summary,
  responses: {
    200: { description, content: { "text/plain": text }, headers: ["Cache-Control"] }
  }
})

export const observabilityResource: ResourceDefinition = {
  tag: "operation",
  about: "For operators: probes, metrics, and an archive of the whole store.",
  isGuarded: true,
  schemas: {},
  operations: {
    "GET /livez": plain(getLive, "getLive", "Tests whether the process lives", "The process lives"),
    "GET /readyz": plain(
      getReady,
      "getReady",
      "Tests whether this node takes requests; else 503",
      "It does"
    ),
    "GET /metrics": {
      ...plain(
        getMetrics,
        "getMetrics",
        "Reads the metrics, in the text format of Prometheus",
        "Measures"
      ),
      description: "Only a client on the service's machine, which forwards nothing for others, " +
        "needs no account; elsewhere it is an admin's.",
      needs: "anyone",
      scopes: ["admin"],
      problems: ["forbidden"]
    },
    "GET /archive": {
      handle: getArchive,
      id: "getArchive",
      summary: "Reads the whole store as an archive for `restante restore`",
      needs: "role",
      scopes: ["admin"],
      problems: ["conflict"],
      responses: {
        200: {
          description: "The archive; its last line confirms that it is complete",
          content: { "application/octet-stream": { type: "string", format: "binary" } },
          headers: ["Cache-Control", "Content-Disposition"]
        }
      }
    }
  }
}
