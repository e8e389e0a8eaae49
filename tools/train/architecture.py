"""The demo model's sizes, as a transformers configuration."""

from transformers import Qwen2_5_VLConfig

VOCABULARY = 2048
# Qwen2.5's order; they follow the byte-level vocabulary.
SPECIAL_TOKENS = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>", "<|box_end|>",
    "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>",
)
FIRST_SPECIAL = VOCABULARY - len(SPECIAL_TOKENS)
TOKEN = {name: FIRST_SPECIAL + index for index, name in enumerate(SPECIAL_TOKENS)}

PATCH, MERGE, TEMPORAL = 14, 2, 2
# A picture has as many pixels as 224x224: 16:9 becomes 280x168 and 4:3 becomes 252x168 when the shape is kept.
PIXELS = 224 * 224
MEAN = (0.48145466, 0.4578275, 0.40821073)
DEVIATION = (0.26862954, 0.26130258, 0.27577711)


def demo_config(text=None, vision=None):
    """The published layout with our sizes; `text` and `vision` overwrite single ones (tests use smaller models)."""
    return Qwen2_5_VLConfig(
        text_config=dict(
            vocab_size=VOCABULARY, hidden_size=320, intermediate_size=1024, num_hidden_layers=6, num_attention_heads=5,
            num_key_value_heads=1, max_position_embeddings=8192, rms_norm_eps=1e-6, tie_word_embeddings=True,
            rope_parameters=dict(rope_type="default", rope_theta=10000.0, mrope_section=[8, 12, 12]),
            bos_token_id=TOKEN["<|endoftext|>"], eos_token_id=TOKEN["<|im_end|>"], pad_token_id=TOKEN["<|endoftext|>"],
        ) | (text or {}),
        vision_config=dict(
            depth=6, hidden_size=192, intermediate_size=512, num_heads=6, out_hidden_size=(text or {}).get("hidden_size", 320), in_channels=3, patch_size=PATCH,
            spatial_merge_size=MERGE, temporal_patch_size=TEMPORAL, tokens_per_second=2, window_size=112, fullatt_block_indexes=[1, 3, 5],
        ) | (vision or {}),
        image_token_id=TOKEN["<|image_pad|>"], video_token_id=TOKEN["<|video_pad|>"],
        vision_start_token_id=TOKEN["<|vision_start|>"], vision_end_token_id=TOKEN["<|vision_end|>"],
        tie_word_embeddings=True, dtype="bfloat16",
    )


def draft_config():
    """The drafter: the same vocabulary and layout, a third of the parameters."""
    return demo_config(text=dict(hidden_size=192, intermediate_size=640, num_hidden_layers=4, num_attention_heads=3),
                       vision=dict(depth=4, hidden_size=128, intermediate_size=384, num_heads=4, fullatt_block_indexes=[1, 3]))


CONFIGS = {"demo": demo_config, "draft": draft_config}
