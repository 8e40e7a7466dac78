/** The OpenAPI parameters of listings of rows. */
import { pagingParameters, type Parameter, text, uri } from "../../formats/openapi/index.ts"

/** The parameters that listings of customers and of quotes share. */
export const rowQuery: Readonly<Record<string, Parameter>> = {
  return: {
    description: "Fields to show, separated by spaces, plus signs or commas; else all.",
    schema: text
  },
  query: { description: "The URI of a query, which must hold too.", schema: uri },
  ...pagingParameters
}
