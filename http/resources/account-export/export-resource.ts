/** The operation of `/accounts/{account}/export`. */
import type { ResourceDefinition } from "../../resource.ts"
import { getExport } from "./export-handler.ts"

export const accountExportResource: ResourceDefinition = {
  tag: "account-export",
  about: "Everything that an account owns.",
  isGuarded: true,
  schemas: {},
  operations: {
    "GET /accounts/{account}/export": {
      handle: getExport,
      id: "exportAccount",
      summary: "Reads everything that an account owns, for itself and the role admin",
      needs: "role",
      scopes: ["admin"],
      problems: ["conflict"],
      responses: {
        200: {
          description: "Lines of JSON; the last one confirms that the export is complete",
          content: { "application/x-ndjson": { type: "string", format: "binary" } },
          headers: ["Cache-Control", "Content-Disposition"]
        }
      }
    }
  }
}
