/**
 * The parts of `/openapi.json` that the API reference shows, by resource: the reference says
 * nothing that the document does not say. HEAD and OPTIONS are the same everywhere and left out.
 */
import type { DocumentPart } from "../../formats/openapi/index.ts"
import { ApiExamples } from "./api-example.ts"
import { isPartOf, listOf, partOf, textOf } from "./document-part.ts"

/** A parameter of the path, the query or the header of a request. */
export interface ApiParameter {
  readonly name: string
  readonly place: string
  readonly isRequired: boolean
  readonly type: string
  readonly description: string
}

/** A body of a request: the types that have one schema, its fields, and an example. */
export interface ApiBody {
  readonly types: ReadonlyArray<string>
  readonly isRequired: boolean
  readonly description: string
  /** The name of the schema; undefined for one without a name. */
  readonly schema: string | undefined
  /** The names of all schemas in it. */
  readonly named: ReadonlyArray<string>
  /** The fields of a schema without a name. */
  readonly fields: ReadonlyArray<ApiField>
  /** As a client sends it; undefined for any bytes. */
  readonly example: string | undefined
}

/** An answer of an operation. */
export interface ApiAnswer {
  readonly status: string
  readonly description: string
  readonly types: ReadonlyArray<string>
  /** The name of the document's schema; undefined for another body, and for none. */
  readonly schema: string | undefined
  /** The kinds of problems that are answered with this status. */
  readonly problems: ReadonlyArray<string>
  /** Names of header fields; those with `?` are not in every answer. */
  readonly headers: ReadonlyArray<string>
}

/** One method of one path. */
export interface ApiOperation {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly summary: string
  readonly description: string
  readonly parameters: ReadonlyArray<ApiParameter>
  readonly bodies: ReadonlyArray<ApiBody>
  readonly answers: ReadonlyArray<ApiAnswer>
}

/** A property of a document. */
export interface ApiField {
  /** From the root, such as `item.url` or `to[]`. */
  readonly path: string
  readonly type: string
  readonly isRequired: boolean
  readonly description: string
}

/** A document of requests or answers. */
export interface ApiDocument {
  readonly name: string
  readonly description: string
  /** The root element in XML; undefined where there is none. */
  readonly root: string | undefined
  /** The documents of which it is one; empty for a document of its own. */
  readonly choice: string
  readonly fields: ReadonlyArray<ApiField>
}

/** The operations of one resource, and every document that they name. */
export interface ApiResource {
  readonly name: string
  readonly about: string
  readonly operations: ReadonlyArray<ApiOperation>
  readonly documents: ReadonlyArray<ApiDocument>
}

/** A way to authenticate. */
export interface ApiScheme {
  readonly name: string
  readonly kind: string
  readonly description: string
}

export interface ApiReference {
  readonly about: string
  readonly server: string
  readonly schemes: ReadonlyArray<ApiScheme>
  readonly resources: ReadonlyArray<ApiResource>
}

const methods = ["get", "post", "put", "delete"]

const schemaPrefix = "#/components/schemas/"

/** The longest pattern that is shown; longer ones only exclude characters that XML cannot have. */
const patternCharsMax = 80

const problemTypes: ReadonlyArray<string> = ["application/problem+json", "application/problem+xml"]

/** The name of the schema that a part refers to; undefined for another part. */
const schemaName = (part: unknown): string | undefined => {
  const target = textOf(partOf(part)["$ref"])
  return target.startsWith(schemaPrefix) ? target.slice(schemaPrefix.length) : undefined
}

/** What a schema demands beyond its type. */
const boundsOf = (schema: DocumentPart): ReadonlyArray<string> => {
  const { minLength, maxLength, minimum, maximum, minItems } = schema
  const pattern = textOf(schema["pattern"])
  const isShown = pattern !== "" && pattern.length <= patternCharsMax && !pattern.includes("\\u")
  return [
    ...minLength === undefined ? [] : [`at least ${minLength} characters`],
    ...maxLength === undefined ? [] : [`at most ${maxLength} characters`],
    ...minimum === undefined ? [] : [`at least ${minimum}`],
    ...maximum === undefined ? [] : [`at most ${maximum}`],
    ...minItems === undefined ? [] : [`at least ${minItems}`],
    ...schema["default"] === undefined ? [] : [`by default ${schema["default"]}`],
    ...isShown ? [`\`${pattern}\``] : []
  ]
}

const bareType = (schema: DocumentPart): string => {
  const named = schemaName(schema)
  if (named !== undefined) return named
  const choices = [...listOf(schema["anyOf"]), ...listOf(schema["oneOf"])]
  if (choices.length > 0) return choices.map((one) => bareType(partOf(one))).join(" or ")
  const values = listOf(schema["enum"])
  if (values.length > 0) return values.map((value) => `\`${value}\``).join(", ")
  if (schema["type"] === "array") return `list of ${bareType(partOf(schema["items"]))}`
  const format = textOf(schema["format"])
  if (format !== "") return format
  const type = schema["type"]
  return Array.isArray(type) ? type.join(" or ") : type === "string" ? "text" : textOf(type)
}

/** The type of a schema in words, with its bounds. */
const typeOf = (schema: DocumentPart): string => [bareType(schema), ...boundsOf(schema)].join("; ")

/** What the document says of a field, with its form in XML. */
const fieldDescription = (schema: DocumentPart): string => {
  const isAttribute = partOf(schema["xml"])["attribute"] === true
  return [
    textOf(schema["description"]),
    ...isAttribute ? ["An attribute in XML."] : [],
    ...schema["readOnly"] === true ? ["Ignored in requests."] : []
  ].filter((text) => text !== "").join(" ")
}

/** The properties of a schema, those of its inner objects included. */
const fieldsOf = (schema: DocumentPart, prefix = ""): ReadonlyArray<ApiField> => {
  const required = listOf(schema["required"])
  const own = Object.entries(partOf(schema["properties"])).flatMap(([name, value]) => {
    const property = partOf(value)
    const isList = property["type"] === "array"
    const path = `${prefix}${name}${isList ? "[]" : ""}`
    const inner = isList ? partOf(property["items"]) : property
    return [
      {
        path,
        type: typeOf(property),
        isRequired: required.includes(name),
        description: fieldDescription(property)
      },
      ...fieldsOf(inner, `${path}.`)
    ]
  })
  const choices = [...listOf(schema["anyOf"]), ...listOf(schema["oneOf"])]
  return [...own, ...choices.flatMap((one) => fieldsOf(partOf(one), prefix))]
}

/** The names of all schemas that a part refers to. */
const namesIn = (value: unknown): ReadonlyArray<string> => {
  if (Array.isArray(value)) return value.flatMap(namesIn)
  if (!isPartOf(value)) return []
  const own = schemaName(value)
  return [...own === undefined ? [] : [own], ...Object.values(value).flatMap(namesIn)]
}

class ReferenceReader {
  private readonly document: DocumentPart
  private readonly schemas: DocumentPart
  private readonly examples: ApiExamples

  constructor(document: DocumentPart) {
    this.document = document
    this.schemas = partOf(partOf(document["components"])["schemas"])
    this.examples = new ApiExamples((part) => this.resolved(part))
  }

  /** The part that another one refers to. */
  private resolved(value: unknown): DocumentPart {
    const part = partOf(value)
    const target = textOf(part["$ref"])
    if (target === "") return part
    const names = target.replace("#/", "").split("/")
    return this.resolved(
      names.reduce<unknown>((inner, name) => partOf(inner)[name], this.document)
    )
  }

  private parameterOf(value: unknown): ApiParameter {
    const part = this.resolved(value)
    return {
      name: textOf(part["name"]),
      place: textOf(part["in"]),
      isRequired: part["required"] === true,
      type: typeOf(partOf(part["schema"])),
      description: textOf(part["description"])
    }
  }

  /** The bodies of an operation: types with the same schema are one. */
  private bodiesOf(operation: DocumentPart): ReadonlyArray<ApiBody> {
    const body = this.resolved(operation["requestBody"])
    const bySchema = new Map<string, Array<string>>()
    const content = partOf(body["content"])
    for (const [type, media] of Object.entries(content)) {
      const key = JSON.stringify(partOf(media)["schema"])
      bySchema.set(key, [...bySchema.get(key) ?? [], type])
    }
    return [...bySchema.values()].map((types) => {
      const schema = partOf(partOf(content[types[0] ?? ""])["schema"])
      return {
        types,
        isRequired: body["required"] === true,
        description: textOf(body["description"]),
        schema: schemaName(schema),
        named: namesIn(schema),
        fields: schemaName(schema) === undefined ? fieldsOf(schema) : [],
        example: this.examples.bodyOf(types, schema)
      }
    })
  }

  /** The kinds of problems in an answer: its schema names their URIs. */
  private problemsIn(content: DocumentPart): ReadonlyArray<string> {
    const media = partOf(content[problemTypes[0] ?? ""])
    const schema = this.resolved(media["schema"])
    const type = partOf(partOf(schema["properties"])["type"])
    return listOf(type["enum"]).map((uri) => textOf(uri).split("/").at(-1) ?? "")
  }

  private answerOf(status: string, value: unknown): ApiAnswer {
    const part = this.resolved(value)
    const content = partOf(part["content"])
    const own = Object.entries(content).filter(([type]) => !problemTypes.includes(type))
    const names = own.flatMap(([, media]) => schemaName(partOf(media)["schema"]) ?? [])
    const headers = Object.entries(partOf(part["headers"])).map(([name, header]) =>
      this.resolved(header)["required"] === true ? name : `${name}?`
    )
    return {
      status,
      description: textOf(part["description"]),
      types: Object.keys(content),
      schema: names[0],
      problems: this.problemsIn(content),
      headers
    }
  }

  private operationOf(path: string, method: string, ofPath: DocumentPart): ApiOperation {
    const operation = partOf(ofPath[method])
    const parameters = [...listOf(ofPath["parameters"]), ...listOf(operation["parameters"])]
    return {
      id: textOf(operation["operationId"]),
      method: method.toUpperCase(),
      path,
      summary: textOf(operation["summary"]),
      description: textOf(operation["description"]),
      parameters: parameters.map((one) => this.parameterOf(one)),
      bodies: this.bodiesOf(operation),
      answers: Object.entries(partOf(operation["responses"])).map(([status, answer]) =>
        this.answerOf(status, answer)
      )
    }
  }

  /** Documents by these names, and those that they refer to. */
  private documentsOf(names: ReadonlyArray<string>): ReadonlyArray<ApiDocument> {
    const all = new Set(names)
    for (const name of all) {
      for (const inner of namesIn(this.schemas[name])) all.add(inner)
    }
    return [...all].map((name) => {
      const schema = partOf(this.schemas[name])
      return {
        name,
        description: textOf(schema["description"]),
        root: textOf(partOf(schema["xml"])["name"]) || undefined,
        choice: schema["anyOf"] === undefined ? "" : bareType(schema),
        fields: fieldsOf(schema)
      }
    })
  }

  private resourceOf(tag: DocumentPart): ApiResource {
    const name = textOf(tag["name"])
    const operations = Object.entries(partOf(this.document["paths"])).flatMap(([path, value]) => {
      const ofPath = partOf(value)
      return methods
        .filter((method) => listOf(partOf(ofPath[method])["tags"]).includes(name))
        .map((method) => this.operationOf(path, method, ofPath))
    })
    const names = operations.flatMap(({ answers, bodies }) => [
      ...bodies.flatMap(({ named }) => named),
      ...answers.flatMap(({ schema }) => schema ?? [])
    ])
    return {
      name,
      about: textOf(tag["description"]),
      operations,
      documents: this.documentsOf(names)
    }
  }

  read(): ApiReference {
    const { components, info, servers, tags } = this.document
    const schemes = Object.entries(partOf(partOf(components)["securitySchemes"]))
    return {
      about: textOf(partOf(info)["description"]),
      server: textOf(partOf(listOf(servers)[0])["url"]),
      schemes: schemes.map(([name, value]) => {
        const part = partOf(value)
        return {
          name,
          kind: [part["type"], part["scheme"], part["in"], part["name"]].map(textOf)
            .filter((text) => text !== "").join(" "),
          description: textOf(part["description"])
        }
      }),
      resources: listOf(tags).map((tag) => this.resourceOf(partOf(tag)))
    }
  }
}

/** The reference of an OpenAPI document. */
export const apiReference = (document: DocumentPart): ApiReference =>
  new ReferenceReader(document).read()
