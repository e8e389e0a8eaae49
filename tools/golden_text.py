#!/usr/bin/env python3
"""Makes tests/golden/tokenizer/: a small tokenizer with the structure of Qwen2.5-VL's, and what transformers makes of hard texts with it.

    tools/golden_text.py OUT

OUT/tokenizer.json         NFC, the published pre-tokenizing expression, byte-level BPE, the published special tokens; trained here
OUT/tokenizer_config.json  with the published chat template
OUT/ids.json               [{"patch": JSON merge patch for tokenizer.json, "cases": [{"text", "ids", "decoded", "skipped"}]}]
OUT/chat.json              [{"messages", "generation_prompt", "images", "videos" (tokens each), "text", "ids"}]

Needs transformers 5.17 and tokenizers. The training text is this file's own sentences and docstrings of Python's library, so another
release of Python trains another vocabulary; the committed files were made together.
"""

import argparse
import inspect
import json
import random
import tempfile
from pathlib import Path

import packages  # noqa: F401  says what is not installed
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

VOCABULARY = 5000
PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>", "<|box_end|>",
           "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"]
ORDINARY = ["<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>",
            "<|file_sep|>"]
TEMPLATE = (
    "{% set image_count = namespace(value=0) %}{% set video_count = namespace(value=0) %}{% for message in messages %}"
    "{% if loop.first and message['role'] != 'system' %}<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n{% endif %}"
    "<|im_start|>{{ message['role'] }}\n{% if message['content'] is string %}{{ message['content'] }}<|im_end|>\n{% else %}"
    "{% for content in message['content'] %}{% if content['type'] == 'image' or 'image' in content or 'image_url' in content %}"
    "{% set image_count.value = image_count.value + 1 %}{% if add_vision_id %}Picture {{ image_count.value }}: {% endif %}"
    "<|vision_start|><|image_pad|><|vision_end|>{% elif content['type'] == 'video' or 'video' in content %}"
    "{% set video_count.value = video_count.value + 1 %}{% if add_vision_id %}Video {{ video_count.value }}: {% endif %}"
    "<|vision_start|><|video_pad|><|vision_end|>{% elif 'text' in content %}{{ content['text'] }}{% endif %}{% endfor %}<|im_end|>\n"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")

SENTENCES = [
    "Is there a person in the room? Yes, one person is standing next to the door. No, the room is empty.",
    "A white car enters the car park from the left, stops for a moment, and leaves through the barrier on the right.",
    "Someone didn't close the gate; they're walking away. It's 10:45 p.m. and we've seen him before. I'll watch, I'm sure he'd return.",
    "摄像机里有一个人吗？是的，有一个人站在门口。停车场里没有车。请用一句话描述视频中发生的事情。",
    "カメラに人が映っていますか。はい、ドアの近くに一人立っています。駐車場には白い車があります。",
    "카메라에 사람이 보입니까? 네, 문 옆에 한 사람이 서 있습니다. 주차장에는 흰색 자동차가 있습니다.",
    "هل يوجد شخص في الغرفة؟ نعم، يوجد شخص واحد يقف بجانب الباب. دخلت سيارة بيضاء إلى موقف السيارات.",
    "क्या कमरे में कोई व्यक्ति है? हाँ, दरवाज़े के पास एक व्यक्ति खड़ा है। पार्किंग में एक सफ़ेद कार है।",
    "มีคนอยู่ในห้องหรือไม่ ใช่ มีคนหนึ่งยืนอยู่ข้างประตู รถสีขาวคันหนึ่งเข้ามาในลานจอดรถ",
    "В комнате есть человек? Да, один человек стоит у двери. Белая машина въезжает на стоянку слева.",
    "Ist eine Person im Raum? Ja, neben der Tür steht jemand. Ein weißes Auto fährt über den Parkplatz und verlässt ihn rechts.",
    "Y a-t-il quelqu'un dans la pièce ? Oui, une personne se tient près de la porte. L'été dernier, c'était différent.",
    "¿Hay alguien en la habitación? Sí, una persona está de pie junto a la puerta. El año pasado no había ningún niño aquí.",
    "Odada biri var mı? Evet, kapının yanında bir kişi duruyor. Beyaz bir araba otoparka giriyor. İstanbul'da ışık.",
    "Có người trong phòng không? Có, một người đang đứng cạnh cửa. Một chiếc xe trắng đi vào bãi đậu xe.",
    "האם יש אדם בחדר? כן, אדם אחד עומד ליד הדלת. מכונית לבנה נכנסת לחניון.",
    "Υπάρχει κάποιος στο δωμάτιο; Ναι, ένα άτομο στέκεται δίπλα στην πόρτα.",
    "அறையில் யாராவது இருக்கிறார்களா? ஆம், கதவருகே ஒருவர் நிற்கிறார்.",
    "ოთახში ვინმე არის? დიახ, კართან ერთი ადამიანი დგას.",
    "👍🏽 🚗💨 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇯🇵 ❤️ ⚠️ 🚶‍♀️ 🔥🔥🔥",
]

HARD = [
    "", " ", "  ", "   a", "a   ", "\n", "\n\n\n", " \n \n", "\t\tx", "a\r\nb\rc", "a \r\n  b", "    indented\n\tand tabs \t \n",
    "Hello, world!", "hello", " hello", "HELLO'S", "I'm we'LL you'Re they'VE he'D isn'T 's", "don’t", "'ſ", "x'ſy", "1234567890", "３４５ ½ ⅷ ²",
    "No. Yes. yes no Yes No YES NO", "a.b,c;d:e!f?g", "--- *** ===", "...!!!???\n\n", "http://user@example.com:8080/a/b?c=d&e=f#g", "C:\\Windows\\x.txt",
    "def f(x: int) -> str:\n    \"\"\"Doc.\"\"\"\n    return f\"{x!r:>10}\"  # ok\n\n\nclass A(B):\n\tpass\n",
    "#include <vector>\nint main() { std::vector<int> v{1, 2, 3}; return v[0] << 3; }\n",
    "SELECT * FROM t WHERE a = 'b' AND c <> \"d\"; -- x", "{\"a\": [1, 2.5e-3, null, true], \"b\": \"\\u00e9\\n\"}", "x" * 200, "ab" * 100, " " * 300, "\n" * 50,
    "=" * 90, "  \u3000 \u2003\u00a0x\u00a0 \u202f\u2028\u2029\u0085y\u1680z\u180e w\u200b\u200cv\ufeffu", "a\x0bb\x0cc\x1cd\x1de\x1ef\x1fg",
    "a \u180eb", "a  \u180e  x", "x\u180e\u180e.", "\u180e1 \u180e", "".join(chr(i) for i in range(1, 32)), "\x00", "a\x00b", "\x7f\x80\x9f", "\u00ad soft\u00adhyphen",
    "摄像机里有一个人吗？没有！", "停車場に白い車があります。", "카메라에 사람이 보입니까?", "한국어", "ㅎㅏㄴ", "한국", "هل يوجد شخص في الغرفة؟", "السَّلَامُ عَلَيْكُمْ",
    "क्या कमरे में कोई व्यक्ति है?", "क़ख़ग़ज़ड़ढ़फ़य़", "มีคนอยู่ในห้องหรือไม่", "กำ น้ำ", "В комнате есть человек?", "ёжик Ёж ё", "İstanbul ıI iİ", "STRASSE straße ẞ",
    "שלום עולם", "Ελληνικά ά ά Ω Ω", "தமிழ் கொடு கொ", "ქართული", "አማርኛ", "ភាសាខ្មែរ", "བོད་ཡིག", "ᚠᚢᚦ 𐍈 𝔘𝔫𝔦 𝟙𝟚", "𠀀𠮷𪜀", "豈更金", "ﬁﬂﬀ ﷺ",
    "é é e\u0301 E\u0301\u0323 E\u0323\u0301 q\u0307\u0323 q\u0323\u0307", "Å Å A\u030a ñ n\u0303 ü u\u0308 ǖ", "a\u0301\u0302\u0303\u0304\u0305\u0306\u0307", "\u0301 alone", "Z\u0351\u036b\u0343a\u0334l\u0357go",
    "ạ\u0308ạ̈ Ç̣", "\u0344 \u0340\u0341 \u0374 \u037e \u0387 \u1fef \u2126 \u212a \u212b \u2329", "\u09cb \u0bca \u0dde \u1100\u1161\u11a8 \uac00\u11a8",
    "👍", "👍🏽", "👩‍👩‍👧‍👦", "👩‍👩‍👧‍👦👨🏿‍🚒 family", "🏳️‍🌈🏴‍☠️", "🇩🇪🇯🇵🇺", "❤️❤", "1️⃣2️⃣#️⃣", "🤷🏻‍♂️ ¯\\_(ツ)_/¯", "🔥" * 30, "\U0001fae8 \U0001f9d1\u200d\U0001f33e",
    "\ufffd", "\ue000\uf8ff\U000f0000", "\ufdd0 \uffff \U0010ffff", "\u202eRTL\u202c \u2066x\u2069", "math ∑∫√≤≥≠±×÷∞ 𝑥²", "€£¥₹₿ © ® ™ § ¶ † ‡ • … – — “ ” ‘ ’ « »",
    "<|im_start|>", "<|im_start|>user\nHi<|im_end|>\n", "a<|endoftext|>b", " <|im_end|> ", "<|im_start|><|im_end|><|im_start|>", "<|im_start", "<|im_start|", "|>", "<|", "<<|im_end|>>",
    "<|vision_start|><|video_pad|><|video_pad|><|vision_end|>Is there", "<tool_call>{\"a\": 1}</tool_call>", "<|IM_START|>", "<|im_start |>", "<|not_a_token|>",
    "e<|im_end|>\u0301", "\u1100<|im_end|>\u1161", "x<|fim_prefix|>y<|fim_suffix|>z<|fim_middle|>", "<|image_pad|>" * 7,
    "The quick brown fox jumps over the lazy dog. " * 5, "camera_01: person=0.97, car=0.02;\tts=2024-05-06T07:08:09.123456Z",
    "snake_case camelCase PascalCase kebab-case SCREAMING_CASE", "3.14159e+00 0x1F 1_000_000 10%", "a" + "\u0300" * 100, "ＦＵＬＬ ｗｉｄｔｈ", "ⅠⅡⅢ ① ⑳ ㊗", "１２３", "٣٤٥ ४५६ ๗๘๙",
]

POOLS = [" ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\u0085", "\u2028", "\u180e", "a", "b", "s", "S", "ſ", "'", "’", "'s", "'LL", "The", " the", "re", "ing", "1", "23", "²", "½", "é", "e\u0301",
         "\u0301", "\u0323", "ß", "İ", "я", "有", "人", "か", "が", "は\u3099", "한", "ᄒ", "ᅡ", "ᆫ", "ع", "َ", "ि", "क", "ํ", "า", "🔥", "👩", "\u200d", "\ufe0f", "🏽", ".", ",", "!", "-", "_", "=", "(", "{", "\"",
         "\\", "/", "<", "|", ">", "<|im_end|>", "<|image_pad|>", "<tool_call>", "\x00", "\x1f", "\u200b", "\ufeff", "\u00ad", "\ufffd", "\U0010ffff", "ǆ", "ʰ", "ª", "Ⅳ", "٣", "𝟙", "𠮷"]


def random_texts(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choice(POOLS) for _ in range(rng.randint(1, 24))) for _ in range(count)]


def training_text() -> list[str]:
    text = []
    for module in (argparse, inspect, json, random, tempfile):
        text.extend(inspect.getsource(module).splitlines(keepends=True))
    return SENTENCES * 12 + text


def train() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(continuing_subword_prefix="", end_of_word_suffix=""))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PATTERN), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)])
    tokenizer.post_processor = processors.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False)
    tokenizer.train_from_iterator(training_text(), trainer)
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    tokenizer.add_tokens([AddedToken(token, special=False, normalized=False) for token in ORDINARY])
    return tokenizer


def merge_patch(value, patch):
    """RFC 7396, as nlohmann::json::merge_patch."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for key, item in patch.items():
        if item is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), item)
    return result


def cases_of(tokenizer: Tokenizer, texts: list[str]) -> list[dict]:
    cases = []
    for text in dict.fromkeys(texts):
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        cases.append({"text": text, "ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False),
                      "skipped": tokenizer.decode(ids, skip_special_tokens=True)})
    return cases


def write_ids(out: Path, base: dict) -> None:
    from transformers import AutoTokenizer

    plain = Tokenizer.from_str(json.dumps(base))
    texts = HARD + random_texts(150, seed=1)
    groups = [{"patch": {}, "cases": cases_of(plain, texts)}]
    auto = AutoTokenizer.from_pretrained(out)
    for case in groups[0]["cases"]:
        assert auto(case["text"], add_special_tokens=False)["input_ids"] == case["ids"], case
        assert auto.decode(case["ids"], skip_special_tokens=False) == case["decoded"], case
        assert auto.decode(case["ids"], skip_special_tokens=True) == case["skipped"], case
    # Byte strings that end within a character: any sequence of tokens may be decoded.
    rng = random.Random(2)
    loose = []
    for _ in range(40):
        ids = [rng.randrange(plain.get_vocab_size()) if rng.random() < 0.3 else rng.randrange(256) for _ in range(rng.randint(1, 16))]
        loose.append({"text": None, "ids": ids, "decoded": auto.decode(ids, skip_special_tokens=False),
                      "skipped": auto.decode(ids, skip_special_tokens=True)})
    groups[0]["cases"].extend(loose)

    # The flags of added tokens.
    next_id = max(token["id"] for token in base["added_tokens"]) + 1
    flags = [("[L]", {"lstrip": True}), ("[R]", {"rstrip": True}), ("[B]", {"lstrip": True, "rstrip": True}), ("word", {"single_word": True}),
             ("né", {"normalized": True}), ("[N] x", {"normalized": True, "special": False}), ("[", {}), ("[[L]", {"special": False}),
             ("人", {"single_word": True, "normalized": True})]
    # As the tokenizers library counts: a token that the vocabulary has too keeps its id there, the others follow without a gap.
    extra = []
    for content, options in flags:
        known = base["model"]["vocab"].get(content)
        extra.append({"id": next_id if known is None else known, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
                      "normalized": False, "special": True} | options)
        next_id += known is None
    texts = ["a [L] b [R] c [B] d", " \n [L][R] \t\u3000 x", "[L] [L]  [L]", "[R]  [R]  [R] x", "[R]  [L]", "[B] [B]", "word sword words word. _word word_ (word) wordword word", "né ne\u0301 né́ x[N] x [N] xy",
             "[[L] [[[L]", "[x]", "一人 人 人人 人a ,人,", "\u200dword\u200d word\u0301 \u0301word 1word", "[L]", "[R]", " [L]", "[R] ", "[R]\u00a0\u200b[L]", "word[L]word[R]word", "[N] xné [N]  x"]
    pool = ["[L]", "[R]", "[B]", "word", "né", "ne\u0301", "[N] x", "[", " ", "  ", "\n", "a", "人", "\u0301", "<|im_end|>", "]", "_", "."]
    rng = random.Random(3)
    texts += ["".join(rng.choice(pool) for _ in range(rng.randint(1, 12))) for _ in range(60)]
    variants = [({"added_tokens": base["added_tokens"] + extra}, texts)]
    # Whole words of the vocabulary without merging; no normaliser; GPT-2's own expression; a literal separator.
    some = [text for text in HARD if len(text) < 60][::2]
    variants.append(({"model": {"ignore_merges": True}}, some))
    variants.append(({"normalizer": None}, ["é e\u0301 \u212b が は\u3099", "e<|im_end|>\u0301"]))
    variants.append(({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True,
                                        "pretokenizers": None}}, some))
    variants.append(({"pre_tokenizer": {"pretokenizers": [
        {"type": "Split", "pattern": {"String": "."}, "behavior": "Isolated", "invert": False},
        {"type": "Split", "pattern": {"Regex": "x*|[^\\s]b"}, "behavior": "Isolated", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}]}}, some + ["a.b.c...", "axxb xb"]))
    for patch, texts in variants:
        groups.append({"patch": patch, "cases": cases_of(Tokenizer.from_str(json.dumps(merge_patch(base, patch))), texts)})
    (out / "ids.json").write_text(json.dumps(groups, ensure_ascii=True, separators=(",", ":")) + "\n")


def write_chat(out: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(out)

    def text(value):
        return {"type": "text", "text": value}

    image, video = {"type": "image"}, {"type": "video"}
    dialogs = [
        ([{"role": "user", "content": "Hi"}], True, [], []),
        ([{"role": "user", "content": [text("Is there a person?")]}], False, [], []),
        ([{"role": "user", "content": [video, text("Is there a person in the room? Answer Yes or No.")]}], True, [], [12]),
        ([{"role": "system", "content": "You watch a camera."}, {"role": "user", "content": [image, text("What is this?")]}], True, [4], []),
        ([{"role": "system", "content": [text("You watch "), text("a camera.")]},
          {"role": "user", "content": [text("Compare "), image, text(" and "), image, text(":"), video]},
          {"role": "assistant", "content": [text("They differ.")]}, {"role": "user", "content": "Why?"}], True, [3, 1], [8]),
        ([{"role": "user", "content": [video, video]}], True, [], [2, 6]),
        ([{"role": "user", "content": [text("literal <|im_end|> and <|vision_start|> 人 e\u0301")]}], True, [], []),
        ([{"role": "user", "content": [text("")]}, {"role": "assistant", "content": ""}], False, [], []),
        ([{"role": "user", "content": "a"}, {"role": "system", "content": "late"}, {"role": "user", "content": "  \n b \n"}], True, [], []),
    ]
    cases = []
    for messages, generation_prompt, images, videos in dialogs:
        rendered = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=generation_prompt)
        expanded = rendered
        for pad, counts in (("<|image_pad|>", images), ("<|video_pad|>", videos)):
            # As Qwen2_5_VLProcessor does: each placeholder becomes as many as the picture has tokens.
            assert expanded.count(pad) == len(counts)
            for count in counts:
                expanded = expanded.replace(pad, "<|placeholder|>" * count, 1)
            expanded = expanded.replace("<|placeholder|>", pad)
        cases.append({"messages": messages, "generation_prompt": generation_prompt, "images": images, "videos": videos, "text": rendered,
                      "ids": tokenizer(expanded, add_special_tokens=False)["input_ids"]})
    (out / "chat.json").write_text(json.dumps(cases, ensure_ascii=True, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    base = json.loads(train().to_str())
    (out / "tokenizer.json").write_text(json.dumps(base, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    config = {"tokenizer_class": "Qwen2Tokenizer", "bos_token": None, "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "unk_token": None,
              "add_prefix_space": False, "clean_up_tokenization_spaces": False, "model_max_length": 131072, "chat_template": TEMPLATE}
    (out / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")
    write_ids(out, base)
    write_chat(out)
    print(f"tokenizers {tokenizers.__version__}: {len(base['model']['vocab'])} tokens, {len(base['model']['merges'])} merges")


if __name__ == "__main__":
    main()
