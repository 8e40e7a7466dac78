/** The operation of `/settings`. */
import { attributes, list, object, oneOf, rootElement, text, uri,
  viewResponse } from "../../formats/openapi/index.ts"
import type { ResourceDefinition } from "../../resource.ts"
import { getSettings } from "./settings-handler.ts"

const setting = object(
  attributes({
    name: text,
    variable: text,
    source: text,
    value: text,
    secret: oneOf("true")
  }),
  ["name", "variable", "source"]
)

export const settingsResource: ResourceDefinition = {
  tag: "settings",
  about: "The settings of the node that answers; for the role admin.",
  isGuarded: true,
  schemas: {
    Settings: rootElement("settings", {
      ...attributes({ href: uri, node: text }),
      setting: list(setting)
    }, ["href", "node"])
  },
  operations: {
    "GET /settings": {
      handle: getSettings,
      id: "getSettings",
      summary: "Reads the settings of this node, and where each value comes from",
      needs: "role",
      scopes: ["admin"],
      responses: { 200: viewResponse("Settings", "All settings; of secrets no value") }
    }
  }
}
