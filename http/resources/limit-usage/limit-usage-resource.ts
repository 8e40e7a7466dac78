/** The operation of `/limits`. */
import { attributes, digits, list, object, oneOf, rootElement, text, uri,
  viewResponse } from "../../formats/openapi/index.ts"
import type { ResourceDefinition } from "../../resource.ts"
import { getLimits } from "./limit-usage-handler.ts"

const client = object(
  attributes({ network: text, account: text, used: digits, "used-bytes": digits, href: uri })
)

const clients = object({ client: list(client) })

const rate = object({
  ...attributes({
    policy: oneOf("address", "account"),
    requests: digits,
    "window-seconds": digits
  }),
  clients
}, ["policy", "requests", "window-seconds"])

/** A quota, with the clients that use most of it. */
export const quotaSchema = object({
  ...attributes({ name: oneOf("network", "account"), "max-bytes": digits, day: text }),
  clients
}, ["name", "max-bytes"])

export const limitUsageResource: ResourceDefinition = {
  tag: "limits",
  about: "Who uses most of the rate limits and quotas; for the role admin.",
  isGuarded: true,
  schemas: {
    LimitUsage: rootElement("limit-usage", {
      ...attributes({ href: uri, node: text }),
      rates: object({ rate: list(rate) }),
      quotas: object({ quota: list(quotaSchema) })
    }, ["href", "node", "quotas"])
  },
  operations: {
    "GET /limits": {
      handle: getLimits,
      id: "getLimits",
      summary: "Reads the busiest networks and accounts, by rate limits and by bytes",
      needs: "role",
      scopes: ["admin"],
      responses: { 200: viewResponse("LimitUsage", "The busiest, at most 20 of each kind") }
    }
  }
}
