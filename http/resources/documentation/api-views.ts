/** The API reference as pages: an overview, and a page for each resource. */
import type { DocsSite } from "../../documentation/index.ts"
import { type Html, html, nothing, table } from "../../formats/html/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { type Element, element } from "../../formats/xml/index.ts"
import { absoluteUri, type Service } from "../../pipeline/index.ts"
import type { ApiAnswer, ApiBody, ApiDocument, ApiField, ApiOperation, ApiReference,
  ApiResource } from "./api-reference.ts"
import { apiPath, docsBody, docsScripts } from "./page-views.ts"

/** A text of the OpenAPI document; what is between backticks is code. */
const prose = (text: string): Html =>
  html`${text.split("`").map((piece, at) => at % 2 === 1 ? html`<code>${piece}</code>` : piece)}`

const documentId = (name: string): string => `document-${name}`

/** A type in words; the names of documents of the page are links. */
const typeText = (type: string, documents: ReadonlySet<string>): Html =>
  html`${
    type.split("`").map((piece, at) =>
      at % 2 === 1 ?
        html`<code>${piece}</code>` :
        piece.split(/(\b[A-Z]\w+\b)/).map((word) =>
          documents.has(word) ? html`<a href="#${documentId(word)}">${word}</a>` : word
        )
    )
  }`

const nameCell = (name: string, isRequired: boolean): Html =>
  html`<th scope="row"><code>${name}</code>${
    isRequired ? html`<br><span class="quiet">required</span>` : nothing
  }</th>`

const parameterTable = (
  { id, parameters }: ApiOperation,
  documents: ReadonlySet<string>
): Html =>
  parameters.length === 0 ? nothing : table(
    `Parameters of ${id}`,
    ["Parameter", "In", "Type", "Meaning"],
    parameters.map(({ description, isRequired, name, place, type }) =>
      html`<tr>${nameCell(name, isRequired)}<td>${place}</td>
<td>${typeText(type, documents)}</td><td>${prose(description)}</td></tr>
`
    )
  )

const fieldTable = (
  about: string,
  fields: ReadonlyArray<ApiField>,
  documents: ReadonlySet<string>
): Html =>
  fields.length === 0 ? nothing : table(
    about,
    ["Field", "Type", "Meaning"],
    fields.map(({ description, isRequired, path, type }) =>
      html`<tr>${nameCell(path, isRequired)}<td>${typeText(type, documents)}</td>
<td>${prose(description)}</td></tr>
`
    )
  )

const typeList = (types: ReadonlyArray<string>): Html =>
  html`${types.map((type, at) => html`${at > 0 && ", "}<code>${type}</code>`)}`

const bodyPart = (
  id: string,
  { description, example, fields, isRequired, named, schema, types }: ApiBody,
  documents: ReadonlySet<string>
): Html =>
  html`<p>${isRequired ? "A body" : "A body may be sent"}${
    schema === undefined ? "" : html`: ${typeText(schema, documents)}`
  }, as ${typeList(types)}. ${prose(description)}${
    schema === undefined && named.length > 0 &&
    html` With the fields of ${typeText(named.join(" or "), documents)}.`
  }</p>
${fieldTable(`Fields of ${id} as ${types[0]}`, fields, documents)}${
    example === undefined ? nothing : html`<pre><code>${example}
</code></pre>
`
  }`

const problemLinks = (problems: ReadonlyArray<string>): Html =>
  html`${
    problems.map((slug, at) => html`${at > 0 && ", "}<a href="/problems/${slug}">${slug}</a>`)
  }`

const answerRow = (
  { description, headers, problems, schema, status, types }: ApiAnswer,
  documents: ReadonlySet<string>
): Html =>
  html`<tr><th scope="row">${status}</th><td>${prose(description)}${
    schema === undefined ? nothing : html`<br>${typeText(schema, documents)}`
  }${problems.length === 0 ? nothing : html`<br>${problemLinks(problems)}`}</td>
<td class="quiet">${typeList(types)}</td><td class="quiet">${headers.join(", ")}</td></tr>
`

const operationPart = (operation: ApiOperation, documents: ReadonlySet<string>): Html => {
  const { answers, bodies, description, id, method, path, summary } = operation
  return html`<section aria-labelledby="${id}">
<h2 id="${id}"><span class="tag">${method}</span> <code>${path}</code></h2>
<p>${prose(summary)}.</p>
<p>${prose(description)}</p>
${parameterTable(operation, documents)}${bodies.map((body) => bodyPart(id, body, documents))}${
    table(
      `Answers of ${id}`,
      ["Status", "Answer", "Types", "Fields of the header"],
      answers.map((answer) => answerRow(answer, documents))
    )
  }</section>
`
}

const documentPart = (
  { choice, description, fields, name, root }: ApiDocument,
  documents: ReadonlySet<string>
): Html =>
  html`<h3 id="${documentId(name)}">${name}</h3>
<p>${prose(description)}${
    root === undefined ? "" : html` In XML the root element is <code>${root}</code>.`
  }${choice === "" ? "" : html` One of ${typeText(choice, documents)}.`}</p>
${fieldTable(`Fields of ${name}`, fields, documents)}`

const operationElement = (
  service: Service,
  { name }: ApiResource,
  { id, method, path, summary }: ApiOperation
): Element =>
  element("operation", {
    href: `${absoluteUri(service, apiPath(name))}#${id}`,
    method,
    path,
    title: summary
  })

const referenceElement = (
  service: Service,
  path: string,
  resources: ReadonlyArray<ApiResource>
): Element =>
  element(
    "api-reference",
    { href: absoluteUri(service, path) },
    ...resources.flatMap((resource) =>
      resource.operations.map((operation) => operationElement(service, resource, operation))
    )
  )

const openapiLink = {
  rel: "service-desc",
  href: "/openapi.json",
  type: "application/json",
  title: "All of this for programs: OpenAPI 3.1"
}

const resourceRow = ({ about, name, operations }: ApiResource): Html =>
  html`<tr><th scope="row"><a href="${apiPath(name)}">${name}</a><br>
<span class="quiet">${prose(about)}</span></th><td>${
    operations.map(({ id, method, path }) =>
      html`<a href="${apiPath(name)}#${id}">${method} ${path}</a><br>
`
    )
  }</td></tr>
`

const overviewBody = ({ about, resources, schemes, server }: ApiReference): Html =>
  html`<p>${prose(about)}</p>
<p>The server is <code>${server}</code>. HEAD is answered wherever GET is, with the same fields and
without a body. OPTIONS at any path answers 204 with <code>Allow</code>.</p>
<h2 id="resources">Resources</h2>
${table("Resources and their operations", ["Resource", "Operations"], resources.map(resourceRow))}
<h2 id="authentication">Authentication</h2>
${
    table(
      "Ways to authenticate",
      ["Scheme", "Kind", "Meaning"],
      schemes.map(({ description, kind, name }) =>
        html`<tr><th scope="row">${name}</th><td><code>${kind}</code></td>
<td>${prose(description)}</td></tr>
`
      )
    )
  }`

/** All resources and their operations. */
export const apiOverview = (
  service: Service,
  site: DocsSite,
  reference: ApiReference
): ResourceView => ({
  title: "API reference",
  tree: () => referenceElement(service, apiPath(), reference.resources),
  links: [openapiLink],
  scripts: docsScripts,
  body: () => docsBody(site, apiPath(), overviewBody(reference))
})

/** Makes the markup of each resource once: that of mailboxes takes several milliseconds. */
const resourceBody = (resource: ApiResource): Html => {
  const known = bodies.get(resource)
  if (known !== undefined) return known
  const body = makeBody(resource)
  bodies.set(resource, body)
  return body
}

const bodies = new WeakMap<ApiResource, Html>()

const makeBody = ({ about, documents, operations }: ApiResource): Html => {
  const names = new Set(documents.map(({ name }) => name))
  return html`<p>${prose(about)}</p>
<ul>
${
    operations.map(({ id, method, path, summary }) =>
      html`<li><a href="#${id}">${method} ${path}</a>: ${prose(summary)}</li>
`
    )
  }</ul>
${operations.map((operation) => operationPart(operation, names))}${
    documents.length === 0 ? nothing : html`<h2 id="documents">Documents</h2>
${documents.map((one) => documentPart(one, names))}`
  }`
}

/** The operations of a resource, with every document that they name. */
export const apiResourceView = (
  service: Service,
  site: DocsSite,
  resource: ApiResource
): ResourceView => ({
  title: `API reference: ${resource.name}`,
  tree: () => referenceElement(service, apiPath(resource.name), [resource]),
  links: [{ rel: "up", href: apiPath(), title: "API reference" }, openapiLink],
  scripts: docsScripts,
  body: () => docsBody(site, apiPath(), resourceBody(resource))
})
