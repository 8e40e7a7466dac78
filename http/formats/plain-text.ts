/** Any document as plain text: one line for each value, indented by depth. */
import type { Element } from "./xml/index.ts"

const indent = "  "

const write = (node: Element, depth: number, lines: Array<string>): void => {
  const margin = indent.repeat(depth)
  const text = node.children.filter((child) => typeof child === "string").join("").trim()
  const broken = text.includes("\n") ? text.replace(/\r?\n/g, `\n${margin}${indent}`) : text
  lines.push(`${margin}${node.name}:${broken === "" ? "" : ` ${broken}`}`)
  for (const key in node.attributes) {
    if (!key.startsWith("xmlns")) lines.push(`${margin}${indent}${key}: ${node.attributes[key]}`)
  }
  for (const child of node.children) if (typeof child !== "string") write(child, depth + 1, lines)
}

/** The text of a document, a title first when given, ending with a line feed. */
export const toText = (root: Element, title?: string): string => {
  const lines: Array<string> = title === undefined ? [] : [title, ""]
  write(root, 0, lines)
  return `${lines.join("\n")}\n`
}
