"""Messages to store and queries to find them with: the same ones on every machine with the same Python.

A corpus of n messages is a prefix of every longer one. It is written to a file once and read from there, so that every
contender gets the same bytes, whatever interpreter it runs in.
"""

import json
import os
import pydoc_data.topics
import random
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

Message = dict[str, Any]
"""A message in OpenAI's chat format, plus ``tool_name`` on a tool's result."""

QUERY_SAMPLE = 10_000
"""Queries are chosen by document frequency in this many messages, so that every size of store holds them."""

CHINESE = tuple(
    re.findall(
        r"\w+",
        "我们 可以 需要 项目 数据 数据库 系统 问题 文件 代码 测试 运行 服务器 配置 更新 版本 用户 "
        "消息 会话 搜索 功能 性能 优化 错误 日志 部署 环境 变量 函数 接口 请求 响应 时间 任务 "
        "计划 完成 检查 修改 删除 添加 查询 索引 缓存 内存 网络 安全 权限 模型 训练 助手 对话 "
        "上下文 记忆 工具 调用 结果 返回 参数 类型 列表 对象 线程 进程 锁 事务 备份 恢复 迁移 "
        "桂林 漓江 北京 上海 天气 旅行 机票 酒店 预订 价格 订单 发票 报告 总结 分析 会议 日程 "
        "提醒 邮件 回复 附件 翻译 文档 ",
    )
)
TOOLS = ("terminal", "read_file", "write_file", "web_search", "browser_open", "patch", "grep", "list_dir")
FOLDERS = ("src", "lib", "tests", "docs", "scripts", "app/api", "core/store", "gateway/platforms")
STEMS = ("handler", "store", "view", "job")
SUFFIXES = ("py", "ts", "md", "json", "yaml", "rs")


class Writer:
    """Writes messages as agents and people do: English prose, paths and ids, tool traffic, some Chinese.

    Prose is made of short runs of words from Python's own manual, which gives real word frequencies and ever new
    sentences. One message in five is tool traffic, one in twenty-five Chinese; the mean is about 400 characters.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        topics = pydoc_data.topics.topics
        self._words = re.findall(
            r"[A-Za-z][A-Za-z'_]*[,.]?|\d+", " ".join(topics[name] for name in sorted(topics))
        )
        self._weights = [1 / (rank + 2) for rank in range(len(CHINESE))]
        self._written = 0

    def message(self) -> Message:
        """Return the next message."""
        self._written += 1
        kind = self._random.random()
        if kind < 0.10:
            return self._call()
        if kind < 0.20:
            return self._result()
        role = "user" if self._written % 2 else "assistant"
        length = int(min(2400, max(40, self._random.lognormvariate(5.8, 0.6))))
        return {"role": role, "content": self._chinese(length // 3) if kind < 0.24 else self._prose(length)}

    def _call(self) -> Message:
        pick = self._random
        arguments = {
            "path": self._path(),
            "query": self._prose(pick.randrange(60, 200)),
            "limit": pick.randrange(1, 500),
            "recursive": pick.random() < 0.5,
        }
        function = {"name": pick.choice(TOOLS), "arguments": json.dumps(arguments)}
        call = {"id": f"call_{pick.getrandbits(96):024x}", "type": "function", "function": function}
        return {"role": "assistant", "content": self._prose(pick.randrange(40, 160)), "tool_calls": [call]}

    def _result(self) -> Message:
        pick = self._random
        output = {
            "exit_code": pick.choice((0, 0, 0, 1)),
            "stdout": self._prose(pick.randrange(150, 500)),
            "path": self._path(),
            "elapsed_ms": pick.randrange(5, 9000),
        }
        return {
            "role": "tool",
            "content": json.dumps(output),
            "tool_call_id": f"call_{pick.getrandbits(96):024x}",
            "tool_name": pick.choice(TOOLS),
        }

    def _prose(self, length: int) -> str:
        pick, words = self._random, self._words
        runs: list[str] = []
        written = 0
        while written < length:
            kind = pick.random()
            if kind < 0.06:
                run = self._path()
            elif kind < 0.09:
                run = f"{pick.getrandbits(32):08x}"
            elif kind < 0.12:
                run = f"ticket{pick.randrange(1, 200_000)}"
            else:
                start = pick.randrange(len(words) - 12)
                run = " ".join(words[start : start + pick.randrange(2, 10)])
            runs.append(run)
            written += len(run) + 1
        return " ".join(runs)

    def _path(self) -> str:
        pick = self._random
        name = f"{pick.choice(STEMS)}{pick.randrange(60)}.{pick.choice(SUFFIXES)}"
        return f"{pick.choice(FOLDERS)}/mod{pick.randrange(400)}/{name}"

    def _chinese(self, length: int) -> str:
        words = self._random.choices(CHINESE, self._weights, k=length // 4 + 1)
        words += self._random.choices(CHINESE, k=length // 4 + 1)
        self._random.shuffle(words)
        return "，".join("".join(words[start : start + 6]) for start in range(0, len(words), 6))


def ensure_corpus(folder: Path, count: int) -> Path:
    """Return a file in *folder* that holds at least *count* messages, one JSON object a line; write it if needed."""
    found = [path for path in folder.glob("corpus-*.jsonl") if int(path.stem.split("-")[1]) >= count]
    if found:
        return min(found, key=lambda path: path.stat().st_size)
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f"unfinished-{os.getpid()}.jsonl"
    writer = Writer(seed=1)
    with unfinished.open("w", encoding="utf-8") as file:
        for _ in range(count):
            file.write(json.dumps(writer.message(), ensure_ascii=False) + "\n")
    return unfinished.rename(folder / f"corpus-{count}.jsonl")


def read_messages(corpus: Path, *, start: int, count: int) -> Iterator[Message]:
    """Yield *count* messages from position *start* on, beginning again at the end of the file."""
    while count > 0:
        with corpus.open(encoding="utf-8") as file:
            position = 0
            for line in islice(file, start, start + count):
                yield json.loads(line)
                position += 1
        if position == 0 and start == 0:
            raise ValueError(f"{corpus} holds no messages; delete it and run again")
        count -= position
        start = 0


def choose_queries(corpus: Path) -> dict[str, list[str]]:
    """Return queries by class, chosen by how many of the first messages hold them."""
    frequency: Counter[str] = Counter()
    phrases: list[tuple[str, str]] = []
    for number, message in enumerate(read_messages(corpus, start=0, count=QUERY_SAMPLE)):
        words = re.findall(r"[a-z0-9]+", message["content"].lower())
        frequency.update(set(words))
        if number % 50 == 0:
            phrases += [pair for pair in pairwise(words) if all(map(str.isalpha, pair))]
    pick = random.Random(7)

    def some(low: float, high: float, count: int) -> list[str]:
        """Words of letters held by between *low* and *high* of the messages."""
        within = (word for word in frequency if word.isalpha() and len(word) > 3)
        return pick.sample(sorted(w for w in within if low < frequency[w] / QUERY_SAMPLE < high), count)

    rare = sorted(
        word for word in frequency if re.fullmatch(r"[0-9a-f]{8}|ticket\d+", word) and frequency[word] < 4
    )
    middling = some(0.01, 0.08, 24)
    return {
        "rare": pick.sample(rare, 8),
        "common": some(0.10, 0.45, 8),
        "two terms": [f"{a} AND {b}" for a, b in zip(middling[:8], middling[8:16], strict=True)],
        "phrase": [f'"{a} {b}"' for a, b in pick.sample(phrases, 8)],
        "prefix": [f"{word[:4]}*" for word in middling[16:]],
        "prefix of 2": [f"{word[:2]}*" for word in middling[16:]],
        "CJK, 1": ["锁", "林", "江", "数", "天"],
        "CJK, 2": ["桂林", "漓江", "天气", "数据", "会话"],
        "CJK, 3 and more": ["数据库", "服务器", "上下文", "数据库系统", "我们可以"],
    }
