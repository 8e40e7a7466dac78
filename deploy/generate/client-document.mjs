/** The OpenAPI document of the compiled service that the clients in other languages are made of. */
import { readFileSync } from "node:fs"
import { withFirstTypes } from "../../dist/http/formats/openapi/index.js"
import { openapiDocument } from "../../dist/http/resource-table.js"
import { inRoot } from "../prepare.mjs"

const { version } = JSON.parse(readFileSync(inRoot("package.json"), "utf8"))

export const baseUrl = "http://localhost:8080"

/** Generators know few types of bodies. */
export const clientDocument = () =>
  withFirstTypes(openapiDocument({ baseUrl, version, contentBytesMax: 1024 ** 3 }))
