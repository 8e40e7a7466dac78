/** The operation of `/admin`. */
import { attributes, digits, elementText, flag, list, object, oneOf, rootElement, text, uri,
  viewResponse } from "../../formats/openapi/index.ts"
import type { ResourceDefinition } from "../../resource.ts"
import { quotaSchema } from "../limit-usage/index.ts"
import { getAdministration } from "./administration-handler.ts"
import { alertTypes } from "./alerts.ts"

const alert = object({
  ...attributes({
    type: oneOf(...alertTypes),
    severity: oneOf("critical", "warning"),
    scope: oneOf("cluster", "node"),
    href: uri
  }),
  ...elementText("What needs attention.")
}, ["type", "severity", "scope", "href"])

const refusal = object(
  attributes({
    limit: oneOf("rate", "quota"),
    of: oneOf("address", "account", "network", "anonymous"),
    count: digits
  }),
  ["limit", "of", "count"]
)

/** Numbers of one element, all of which it always has. */
const figures = (...names: ReadonlyArray<string>) =>
  object(attributes(Object.fromEntries(names.map((name) => [name, digits]))), names)

export const administrationResource: ResourceDefinition = {
  tag: "administration",
  about: "What needs the operator's attention; for the role admin.",
  isGuarded: true,
  schemas: {
    Administration: rootElement("administration", {
      ...attributes({ href: uri, node: text, version: text, format: digits, connected: flag }),
      alerts: object({ alert: list(alert) }),
      nodes: figures("count", "silent", "versions"),
      versions: object({ version: list(text) }),
      shards: figures("count", "owned"),
      quarantines: figures("count"),
      deliveries: figures("waiting", "circuits-open"),
      reports: object(attributes({ count: digits, more: oneOf("true") }), ["count"]),
      "anonymous-content": figures("used-bytes", "max-bytes"),
      quota: quotaSchema,
      disk: figures("free-bytes", "floor-bytes"),
      "spent-limits": object(
        attributes({ networks: digits, accounts: digits, more: oneOf("true") }),
        ["networks", "accounts"]
      ),
      refusals: object({ refusal: list(refusal) })
    }, [
      "href",
      "node",
      "version",
      "format",
      "nodes",
      "shards",
      "quarantines",
      "deliveries",
      "spent-limits",
      "refusals"
    ])
  },
  operations: {
    "GET /admin": {
      handle: getAdministration,
      id: "getAdministration",
      summary: "Reads what needs attention, and the figures that it follows from",
      description:
        "Nodes, shards, quarantines, deliveries, reports and content, also that of the " +
        "accounts that use most of their quota, are of all nodes. The connection, the disk, the " +
        "clients that have spent their whole rate limit now (`more`: only so many are counted) " +
        "and the refusals, since its start, are of the node that answers. Suspended " +
        "registrations are not counted.",
      needs: "role",
      scopes: ["admin"],
      responses: { 200: viewResponse("Administration", "The alerts and the figures") }
    }
  }
}
