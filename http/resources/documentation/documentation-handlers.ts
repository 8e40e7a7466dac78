/** The handlers of `/docs`. */
import { Effect } from "effect"
import { type DocsSite, pageTexts, searchable, type SearchableText,
  searchTexts } from "../../documentation/index.ts"
import { isText } from "../../formats/xml/index.ts"
import { docsQueryCharsMax } from "../../limits.ts"
import { type Call, defineHandler, type HandlerFailure, httpError, inPlace, readQuery, type Service,
  viewAnswer } from "../../pipeline/index.ts"
import { answerFile, cacheable, makeFile } from "../home/index.ts"
import type { ApiReference, ApiResource } from "./api-reference.ts"
import { apiOverview, apiResourceView } from "./api-views.ts"
import { apiPath, docsPageView, searchView, siteView } from "./page-views.ts"

/** The API reference of a service. */
type ReferenceOf = (service: Service) => ApiReference

/** The site of this program; 404 in one that was built without it. */
const siteOf = Effect.fnUntraced(function*(
  service: Service
): Effect.fn.Return<DocsSite, HandlerFailure> {
  const site = yield* service.documentation.site
  if (site !== undefined) return site
  return yield* httpError(
    "not-found",
    "this program has no documentation: build it with npm run build"
  )
})

const operationTexts = (resources: ReadonlyArray<ApiResource>): ReadonlyArray<SearchableText> =>
  resources.flatMap(({ name, operations }) =>
    operations.map(({ description, id, method, path, summary }) =>
      searchable({
        href: `${apiPath(name)}#${id}`,
        page: `API reference: ${name}`,
        title: `${method} ${path}`,
        text: `${summary}. ${description}`
      })
    )
  )

/** Makes the texts of a site and of the reference at the first search. */
const searchedTexts = (referenceOf: ReferenceOf) => {
  let made: ReadonlyArray<SearchableText> | undefined
  return (service: Service, { pages }: DocsSite): ReadonlyArray<SearchableText> =>
    made ??= [...pages.flatMap(pageTexts), ...operationTexts(referenceOf(service).resources)]
}

/** What a client searches for; empty for nothing. */
const readSearch = Effect.fnUntraced(function*(
  call: Call
): Effect.fn.Return<string, HandlerFailure> {
  const query = (yield* readQuery(call)).get("q") ?? ""
  if ([...query].length > docsQueryCharsMax) {
    const detail = `q has more than ${docsQueryCharsMax} characters; search for fewer words`
    return yield* httpError("malformed", detail)
  }
  if (!isText(query)) {
    return yield* httpError("malformed", "q has a control character; send text alone")
  }
  return query.trim()
})

/** `/docs`: the first page, or what a search finds. */
export const getDocumentation = (referenceOf: ReferenceOf) => {
  const textsOf = searchedTexts(referenceOf)
  return defineHandler(function*(service, call) {
    const site = yield* siteOf(service)
    const query = yield* readSearch(call)
    if (query === "") return viewAnswer(siteView(service, site))
    const searching = Effect.suspend(() => searchTexts(textsOf(service, site), query))
    const matches = yield* inPlace(service.docsSearches, call.request, searching)
    return viewAnswer(searchView(service, site, query, matches))
  })
}

/** A page; `folder` is the folder of the path, with a slash at its end. */
export const getDocsPage = (folder = "") =>
  defineHandler(function*(service, { parameters }) {
    const site = yield* siteOf(service)
    const path = folder + parameters.get("page")
    const page = site.pages.find((one) => one.path !== "" && one.path === path)
    return page === undefined || parameters.secret("page") !== undefined
      ? yield* httpError("not-found")
      : viewAnswer(docsPageView(service, site, page))
  })

/** A picture of a page. */
export const getDocsPicture = defineHandler(function*(service, call) {
  const { pictures } = yield* siteOf(service)
  const name = call.parameters.get("file")
  const picture = Object.hasOwn(pictures, name) ? pictures[name] : undefined
  return picture === undefined || call.parameters.secret("file") !== undefined
    ? yield* httpError("not-found")
    : yield* answerFile(call, makeFile("image/webp", Buffer.from(picture, "base64"), cacheable))
})

export const getApiReference = (referenceOf: ReferenceOf) =>
  defineHandler(function*(service) {
    const site = yield* siteOf(service)
    return viewAnswer(apiOverview(service, site, referenceOf(service)))
  })

export const getApiResource = (referenceOf: ReferenceOf) =>
  defineHandler(function*(service, { parameters }) {
    const site = yield* siteOf(service)
    const name = parameters.get("resource")
    const resource = referenceOf(service).resources.find((one) => one.name === name)
    return resource === undefined || parameters.secret("resource") !== undefined
      ? yield* httpError("not-found")
      : viewAnswer(apiResourceView(service, site, resource))
  })
