/** The operations of `/docs`. */
import { attribute, attributes, type DocumentPart, elementText, list, object, rootElement, text,
  uri, viewResponse } from "../../formats/openapi/index.ts"
import { docsQueryCharsMax } from "../../limits.ts"
import type { HttpSettings, Service } from "../../pipeline/index.ts"
import type { ResourceDefinition, ResourceOperation } from "../../resource.ts"
import { fileOperation } from "../home/index.ts"
import { type ApiReference, apiReference } from "./api-reference.ts"
import { getApiReference, getApiResource, getDocsPage, getDocsPicture,
  getDocumentation } from "./documentation-handlers.ts"

const schemas: ResourceDefinition["schemas"] = {
  Documentation: rootElement("documentation", {
    ...attributes({ href: uri, q: text }),
    page: list(object(attributes({ href: uri, title: text, section: text }), ["href", "title"])),
    match: list(
      object({
        ...attributes({ href: uri, title: text, page: text }),
        ...elementText("The text around the first word of the search.")
      }, ["href", "title", "page"])
    )
  }, ["href"]),
  DocumentationPage: rootElement("document", {
    ...attributes({ href: uri, title: text, section: text }),
    file: attribute({ ...text, description: "The Markdown file in the sources of the service." }),
    part: list(
      object({
        ...attributes({ href: uri, title: text }),
        ...elementText("The text between this heading and the next one.")
      }, ["href", "title"])
    )
  }, ["href", "title", "section", "file", "part"]),
  ApiReference: rootElement("api-reference", {
    href: attribute(uri),
    operation: list(
      object(attributes({ href: uri, method: text, path: text, title: text }), [
        "href",
        "method",
        "path",
        "title"
      ])
    )
  }, ["href", "operation"])
}

const pageOperation = (id: string, about: string, folder = ""): ResourceOperation => ({
  handle: getDocsPage(folder),
  id,
  summary: `Reads a page of the documentation${about}`,
  isNeverGone: true,
  responses: { 200: viewResponse("DocumentationPage", "The page, and its text by headings") }
})

const pictureOperation: ResourceOperation = {
  ...fileOperation("getDocumentationPicture", "Reads a picture of the documentation", {
    "image/webp": { type: "string", format: "binary" }
  }),
  handle: getDocsPicture,
  isNeverGone: true
}

/** `document` makes the OpenAPI document of all resources. */
export const documentationResource = (
  document: (settings: HttpSettings) => DocumentPart
): ResourceDefinition => {
  let reference: ApiReference | undefined
  const referenceOf = ({ settings }: Service): ApiReference =>
    reference ??= apiReference(document(settings))
  return {
    tag: "documentation",
    about: "The documentation of the service, with a search, and the API reference.",
    schemas,
    operations: {
      "GET /docs": {
        handle: getDocumentation(referenceOf),
        id: "getDocumentation",
        summary: "Lists the pages of the documentation, or searches them",
        query: {
          q: {
            description: "Words, all of which a place in the documentation has.",
            schema: { ...text, maxLength: docsQueryCharsMax }
          }
        },
        problems: ["not-found"],
        responses: {
          200: viewResponse("Documentation", "The pages, or the places that a search finds")
        }
      },
      "GET /docs/api": {
        handle: getApiReference(referenceOf),
        id: "getApiReference",
        summary: "Lists the operations of all resources, for people",
        problems: ["not-found"],
        responses: { 200: viewResponse("ApiReference", "All operations") }
      },
      "GET /docs/api/{resource}": {
        handle: getApiResource(referenceOf),
        id: "getApiResource",
        summary: "Describes the operations of a resource, for people",
        isNeverGone: true,
        responses: { 200: viewResponse("ApiReference", "The operations of the resource") }
      },
      "GET /docs/{page}": pageOperation("getDocumentationPage", ""),
      "GET /docs/how-to/{page}": pageOperation("getHowToPage", ": how to do something", "how-to/"),
      "GET /docs/modules/{page}": pageOperation(
        "getModulePage",
        ": a module of the sources",
        "modules/"
      ),
      "GET /docs/pictures/{file}": pictureOperation,
      "GET /docs/reference/{page}": pageOperation(
        "getReferencePage",
        ": a reference",
        "reference/"
      )
    }
  }
}
